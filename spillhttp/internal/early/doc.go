// Package early rejects requests on connections of HTTP/1.1 before net/http reads them. A rejection
// then costs half of one in a handler, because net/http makes no goroutine, no request and no
// answer for it.
//
// A [Conn] is between net/http and a connection. It examines the bytes that net/http is about to
// read. If they begin a request that it understands completely, it shows the head to its [Gate].
// The Gate returns the bytes of an answer, and net/http never sees the request; or it returns nil,
// and all bytes are passed through. Data flows one way: the package does not know who decides, or
// why.
//
// # Contract
//
// It parses a request if all of this holds, and leaves everything else to net/http:
//
//   - net/http waits for a request: the last one has ended and was answered, and nothing was read
//     ahead. The server has to say so by [State]. One byte that is out of order ends all parsing on
//     the connection.
//   - The head comes with one Read, so it has at most 4 KiB, which is the buffer of net/http.
//     Behind it comes nothing but the body.
//   - The request line is "METHOD /path HTTP/1.1", with capital letters and single spaces. The
//     method is not CONNECT.
//   - All lines end with CRLF. Names are tokens, no line is folded, no value has a control
//     character but the tab.
//   - There is one Host of plain characters, and at most one Content-Length, of digits.
//   - The body has at most [MaxBody] bytes. After a longer one the connection is better closed, by
//     net/http.
//   - There is no Transfer-Encoding, Upgrade, Expect or Trailer, and no Connection but keep-alive.
//
// This is a subset of what RFC 9112 allows and of what net/http accepts. For each request in it,
// the method, the URL, the header, the host and the length of the body are those that net/http
// finds. Both agree where a request ends, so no request can be smuggled past one of them. Tests
// compare both on requests on which servers have disagreed, on random mutations of them, and on
// streams of them in random pieces (TestFrameAgreesOnShapes, TestStreamsAgree); FuzzFrame and
// FuzzConnection compare both on any bytes.
//
// It never
//
//   - changes, delays, reorders or copies bytes that net/http gets. One exception: an empty line
//     behind requests that were answered here is made invalid, because net/http, which does not
//     know of them, would accept it after a POST;
//   - waits for anything except a client that reads an answer, for twice [maxStreak];
//   - reads a body: the rest of the body of a request that was rejected is dropped as it comes,
//     within the read timeouts of the server;
//   - starts a goroutine or a timer, reads a clock (the Gate has one), or writes anything but the
//     answers of the Gate.
//
// # Threat model
//
// Any client that can open a connection to a listener without TLS can send any bytes, in any
// pieces, at any speed, and can stop reading. Its bytes are parsed in the goroutine of its
// connection. Only the Gate and a pool of Heads are shared. The bounds:
//
//	what                               bound                      at the bound
//	head that is parsed                one Read of net/http       net/http reads it
//	head in pieces, kept to track      4 KiB and one Read         kept no longer; no parsing on this connection any more
//	body of a request answered here    16 KiB                     net/http reads the request
//	Content-Length                     15 digits                  net/http reads the request
//	fields shown to the Gate           10 names, 31 bytes each    fixed by the program
//	answers in a row                   1 s                        one request passes through; timeouts of the server begin again
//	answer that is not read            2 s                        the connection ends
//	memory of a Head                   two copies of its fields   reused; one for each connection that is being answered
//
// The parser reads each byte of a head once, which takes about 1 ns, and again to track a request
// that is passed through. If the Gate asks for the whole [http.Request], the fields are also copied
// once. A head in pieces is parsed again for each piece. A client that sends single bytes makes the
// parser read 8 MB for a head of 4 KiB, which costs about the same as the 4,096 reads. Each Read
// takes linear time in the bytes of the head so far. No table grows with the input, and no input
// panics.
//
// An attacker gets the answers of the Gate to its own requests. It does not reach another
// connection, or the handler behind the Gate, or a decision on a request that net/http would read
// differently.
package early
