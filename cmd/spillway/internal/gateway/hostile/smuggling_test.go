package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Requests that two servers may take for different ones: RFC 9112, section 6.3 and 11.2.
// Each has a second request in what may be its body.
var smuggling = []string{
	"Content-Length: 5\r\nTransfer-Encoding: chunked",
	"Transfer-Encoding: chunked\r\nContent-Length: 5",
	"Content-Length: 5\r\nContent-Length: 6",
	"Content-Length: 5, 6",
	"Content-Length: 5\r\nContent-Length: 5, 6",
	"Content-Length: +5",
	"Content-Length: -0",
	"Content-Length: 0x5",
	"Content-Length: 5 5",
	"Content-Length: 5\x0b",
	"Content-Length : 5\r\nTransfer-Encoding: chunked",
	"Transfer-Encoding : chunked",
	"Transfer-Encoding: xchunked",
	"Transfer-Encoding: chunked, identity",
	"Transfer-Encoding: identity, chunked",
	"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
	"Transfer-Encoding:\x0bchunked",
	"Transfer-Encoding: \x00chunked",
	"Transfer-Encoding\n: chunked",
	" Transfer-Encoding: chunked",
	"X: y\n Transfer-Encoding: chunked",
	"X: y\rTransfer-Encoding: chunked",
	"Transfer_Encoding: chunked",
	"Transfer-Encoding: \"chunked\"",
	"Transfer-Encoding: cHuNkEd\r\nContent-Length: 5",
	"Connection: Content-Length\r\nContent-Length: 44",
	"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked",
	"Host: b\r\nContent-Length: 5",
}

// smuggled sends each of them, with a second request in what may be the body of the first.
func smuggled(ctx context.Context, s *stage) (err error) {
	every(ctx, 10*time.Millisecond, func(i int) {
		if problem := s.smuggle(ctx, smuggling[i%len(smuggling)]); problem != nil {
			err = problem
		}
	})
	return err
}

func (s *stage) smuggle(ctx context.Context, headers string) error {
	c, err := dial(ctx, s.address)
	if err != nil {
		return nil // it is no answer
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	text := "POST /none HTTP/1.1\r\nHost: a\r\nX-Id: outer\r\n" + headers + "\r\n\r\n0\r\n\r\nGET /work HTTP/1.1\r\nHost: a\r\nX-Id: inner\r\n\r\n"
	_, _ = io.WriteString(c, text)
	in := bufio.NewReader(c)
	first, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil // hung up on
	}
	body, _ := io.ReadAll(first.Body)
	if strings.Contains(string(body), "inner") {
		return fmt.Errorf("%q: the first answer is that of the second request", headers)
	}
	// A second request may be served only if the proxy takes the two for two, and frames them
	// so to the upstream. If the framing of the first is an error, the rest has no meaning.
	again, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil // hung up on
	}
	rest, _ := io.ReadAll(again.Body)
	if first.StatusCode == http.StatusBadRequest && strings.Contains(string(rest), "inner") {
		return fmt.Errorf("%q: answered with %d, and the rest is served", headers, first.StatusCode)
	}
	return nil
}
