package spillhttp

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/spillhttp/internal/early/earlytest"
)

// TestEarlyRejection: which requests net/http does not even see, and that the client
// cannot tell.
func TestEarlyRejection(t *testing.T) {
	const (
		get   = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
		vip   = "GET /vip HTTP/1.1\r\nHost: x\r\n\r\n"
		probe = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
		post  = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
		chunk = "POST /vip HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
		last  = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	)
	head := func(line string, body int) string {
		return fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", line, body)
	}
	for _, row := range []struct {
		name   string
		pieces []string
		seen   int
	}{
		{"rejected", []string{get, get, get}, 0},
		{"admitted and exempt", []string{get, vip, get, probe, get}, 2},
		{"head in pieces", []string{get[:7], get[7:], get, get}, 1},
		{"whole body", []string{post + "hello", get, post + "hello"}, 0},
		{"body apart", []string{post, "hel", "lo", get}, 0},
		{"body of a GET", []string{"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe", "llo", vip}, 1},
		{"body that never ends", []string{post + "he"}, 0},
		{"body as long as the connection is kept", []string{head("POST /", drainBytes), strings.Repeat("x", drainBytes), get, vip}, 1},
		{"body for which it is not", []string{head("POST /", drainBytes+1), strings.Repeat("x", drainBytes+1), get}, 1},
		{"body that ends with the next request", []string{post, "hello" + vip, get, post + "he", "llo" + get}, 1},
		{"body that ends with a part of the next one", []string{post, "hello" + vip[:7], vip[7:], get}, 1},
		{"empty line after a body", []string{post, "hello\r\n", vip, post + "hello", "\r", "\n" + vip, post + "hello", "\r\n\r\n" + get, vip}, 3},
		{"more than two of them", []string{post + "hello", "\r\n\r\n\n" + vip}, 0},
		{"empty line after no POST", []string{strings.Replace(post, "POST", "PUT", 1) + "hello", "\r\n" + vip}, 0},
		{"no body but an empty line", []string{head("POST /", 0), "\r\n" + get, vip}, 1},
		{"body before a request that is no POST", []string{post + "hello", get, "\r\n" + vip}, 0},
		{"body that looks like a request", []string{"POST /vip HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n", get, get}, 1},
		{"pipelined", []string{get, get + get, get}, 3},
		{"pipelined before a body", []string{
			vip + "POST /vip HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n", get, get,
		}, 3},
		{"pipelined in part", []string{vip + "P", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", get}, 3},
		{"chunked", []string{get, chunk, get}, 2},
		{"the last", []string{get, last, get}, 1},
		{"bare line feeds", []string{"GET / HTTP/1.1\nHost: x\n\n", get}, 2},
		{"wrong", []string{get, "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", get}, 0},
		{"TLS", []string{"\x16\x03\x01\x02\x00\x01", get}, 0},
		{"long head", []string{get[:len(get)-2] + "X: " + strings.Repeat("x", 5000) + "\r\n\r\n", get}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := half(t, echo)
				got, seen := play(t, newSender(row.pieces...), h, true)
				want, _ := play(t, newSender(row.pieces...), h, false)
				if unify(t, got) != unify(t, want) || seen != row.seen {
					t.Errorf("net/http saw %d requests, want %d; answers\n%swant\n%s", seen, row.seen, unify(t, got), unify(t, want))
				}
				nothingLeft(t, h)
			})
		})
	}
}

// TestEarlyRejectionInPieces is the same for requests in any order, in pieces of any length.
func TestEarlyRejectionInPieces(t *testing.T) {
	parts := []string{
		plainRequest, plainRequest, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /vip HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"POST /vip HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n" + plainRequest[:27],
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("\r\n\r\n", 2250),
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	}
	handled := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 0))
		var pieces []string
		for range 12 {
			text := parts[random.IntN(len(parts))]
			if random.IntN(16) == 0 {
				text += "\r\n"
			}
			for random.IntN(2) == 0 {
				cut := random.IntN(len(text))
				pieces = append(pieces, text[:cut])
				text = text[cut:]
			}
			if n := len(pieces) - 1; n >= 0 && random.IntN(4) == 0 {
				pieces[n] += text
			} else {
				pieces = append(pieces, text)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			h := half(t, echo)
			got, early := play(t, newSender(pieces...), h, true)
			want, all := play(t, newSender(pieces...), h, false)
			if unify(t, got) != unify(t, want) {
				t.Fatalf("seed %d: %q\nanswers\n%swant\n%s", seed, pieces, unify(t, got), unify(t, want))
			}
			handled += all - early
		})
	}
	if handled < 100 {
		t.Errorf("only %d requests were rejected early: the test shows little", handled)
	}
}

// TestEarlyRejectionOfUnreadBodies: a function that needs the body sees it, as long as it is.
func TestEarlyRejectionOfUnreadBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := swamped
		config.Load = utilization(1) // which rejects all but CRITICAL_PLUS
		config.Rand = func() float64 { return 0.5 }
		h := mustHandler(t, echo, config, HandlerConfig{Classify: func(r *http.Request) (c spillway.Call) {
			if text, _ := io.ReadAll(r.Body); string(text) == "hello" {
				c.Criticality = spillway.CriticalPlus
			}
			return c
		}})
		h.looks.Store(lookOn)
		request := func(body string) string {
			return fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
		got, seen := play(t, newSender(request("hello"), request("spam!"), request(""), request("spam!")), h, true)
		if seen != 3 || strings.Count(got, "HTTP/1.1 200") != 1 || strings.Count(got, "HTTP/1.1 503") != 3 {
			t.Errorf("net/http saw %d requests, want 3; answers\n%s", seen, got)
		}
		nothingLeft(t, h)
	})
}

// TestEarlyRejectionAtAGlance is the same for a Handler that looks at nothing but the
// path and the claims.
func TestEarlyRejectionAtAGlance(t *testing.T) {
	const sheddable = "X-Request-Criticality: SHEDDABLE\r\n"
	get := func(path, fields string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" }
	for _, row := range []struct {
		name, request string
		seen          int // of two
	}{
		{"labelled", get("/", sheddable), 0},
		{"in lower case", get("/?a=%41", "x-request-criticality:\tsheddable \r\n"), 0},
		{"twice", get("/", "X-Request-Criticality: CRITICAL\r\n"+sheddable), 0},
		{"in the baggage", get("/", "baggage: a=b, criticality=SHEDDABLE_PLUS;c\r\n"), 0},
		{"no time left", get("/", "X-Envoy-Expected-Rq-Timeout-Ms: 0\r\n"), 2},
		{"of another method", "DELETE / HTTP/1.1\r\nHost: x\r\n" + sheddable + "\r\n", 0},
		{"not labelled", get("/", ""), 2},
		{"exempt", get("/healthz", sheddable), 2},
		{"exempt, escaped", get("/health%7a", sheddable), 0},
		{"like exempt", get("/healthz/", sheddable), 0},
		{"badly escaped", get("/%zz", sheddable), 0}, // which net/http answers by itself, and closes
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := busy
				config.Rand = func() float64 { return 0.5 }
				h := mustHandler(t, echo, config, HandlerConfig{HealthPaths: []string{"/healthz"}})
				h.looks.Store(lookOn)
				got, seen := play(t, newSender(row.request, row.request), h, true)
				want, _ := play(t, newSender(row.request, row.request), h, false)
				if unify(t, got) != unify(t, want) || seen != row.seen {
					t.Errorf("net/http saw %d requests, want %d; answers\n%swant\n%s", seen, row.seen, unify(t, got), unify(t, want))
				}
				nothingLeft(t, h)
			})
		})
	}
}

// TestEarlyRejectionOverQuota: a customer over its quota gets the answer of the handler, which
// says that no other customer is concerned.
func TestEarlyRejectionOverQuota(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	synctest.Test(t, func(t *testing.T) {
		config := ingress.Config{Quota: none(), Rand: func() float64 { return 0.5 }}
		h := mustHandler(t, echo, config, HandlerConfig{Classify: func(*http.Request) spillway.Call { return spillway.Call{Customer: "alice"} }})
		play(t, newSender(get), h, false) // which uses up the quota
		h.looks.Store(lookOn)
		got, seen := play(t, newSender(get, get), h, true)
		want, _ := play(t, newSender(get, get), h, false)
		if unify(t, got) != unify(t, want) || seen != 0 || strings.Count(got, "429 Too Many Requests") != 2 {
			t.Errorf("net/http saw %d requests, want none; answers\n%swant\n%s", seen, unify(t, got), unify(t, want))
		}
		if h.looks.Load() != lookOn-2 {
			t.Errorf("%d requests more are looked at, want %d: no request was rejected for overload", h.looks.Load(), lookOn-2)
		}
		nothingLeft(t, h)
	})
}

// TestWithoutConnState: a Listener that is not told where requests end rejects
// nothing.
func TestWithoutConnState(t *testing.T) {
	h := half(t, echo)
	c := must(NewListener(earlytest.Listen(newSender(plainRequest)), h).Accept())
	buf := make([]byte, 4096)
	if n, err := c.Read(buf); string(buf[:n]) != plainRequest || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// TestHijackedConnection: on a connection that was taken over nothing is looked at,
// though it may look like requests.
func TestHijackedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tunnel := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for line, err := rw.ReadString('\n'); err == nil; line, err = rw.ReadString('\n') {
				fmt.Fprint(c, "> ", line)
			}
		})
		got, _ := play(t, newSender("GET /vip HTTP/1.1\r\nHost: x\r\n\r\n", plainRequest), half(t, tunnel), true)
		if want := "> GET /search?q=go HTTP/1.1\r\n> Host: example.com\r\n> \r\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestStreak: a connection that answers by itself lets the server's timeouts begin
// again now and then, and does not wait for a client that never reads, or whose body never ends.
func TestStreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := half(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }))
		s := open(t, "HTTP1", h, true)
		seen := 0
		s.server.IdleTimeout = 5 * time.Second
		s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen++
			h.ServeHTTP(w, r)
		})
		defer s.close()
		get := func(path string) int {
			r := newRequest(t, t.Context(), http.MethodGet, nil)
			r.URL.Path = path
			resp := must(s.base.RoundTrip(r))
			readAll(t, resp)
			return resp.StatusCode
		}
		for i := range 100 {
			if status := get("/"); status != 503 {
				t.Fatal(status)
			}
			if i%10 == 0 {
				if status := get("/vip"); status != 200 {
					t.Errorf("%d to a slow request after a rejection", status)
				}
			}
			time.Sleep(400 * time.Millisecond)
		}
		if seen < 20 || seen > 60 {
			t.Errorf("net/http saw %d requests of 110, want one for each second", seen)
		}
		if n := s.network.opens.Load(); n != 1 {
			t.Errorf("%d connections, want 1 that is never idle", n)
		}
		deaf := must(s.network.dial(t.Context(), "", ""))
		defer deaf.Close()
		fmt.Fprint(deaf, plainRequest)
		time.Sleep(time.Minute)
		if _, err := fmt.Fprint(deaf, plainRequest); err == nil {
			t.Error("the server still waits for its answer to be read")
		}
		slow := must(s.network.dial(t.Context(), "", ""))
		defer slow.Close()
		answers := bufio.NewReader(slow)
		for _, text := range []string{"GET /vip HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"} {
			fmt.Fprint(slow, text)
			readAll(t, must(http.ReadResponse(answers, nil)))
		}
		for sent := 0; ; sent++ {
			if _, err := fmt.Fprint(slow, "x"); err != nil {
				break
			} else if sent > 5 {
				t.Fatal("the server still waits for the rest of a body, after its idle timeout")
			}
			time.Sleep(time.Second) // in the virtual time of the bubble
		}
	})
}

// TestSentAhead: a client that sends its next request while the last one is being
// answered, and whose first byte net/http then reads, is rejected early again as
// soon as it has an answer before it asks.
func TestSentAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := half(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }))
		s := open(t, "HTTP1", h, true)
		seen := 0
		s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen++
			h.ServeHTTP(w, r)
		})
		defer s.close()
		c := must(s.network.dial(t.Context(), "", ""))
		defer c.Close()
		answers := bufio.NewReader(c)
		ask := func(status int, requests ...string) {
			go func() {
				for _, r := range requests {
					fmt.Fprint(c, r) // returns when all of it was read
					time.Sleep(time.Second)
				}
			}()
			for range requests {
				resp := must(http.ReadResponse(answers, nil))
				readAll(t, resp)
				if resp.StatusCode != status {
					t.Errorf("status %d, want %d", resp.StatusCode, status)
				}
			}
			synctest.Wait()
		}
		const vip = "GET /vip HTTP/1.1\r\nHost: x\r\n\r\n"
		for i, step := range []struct {
			status   int
			requests []string
			seen     int
		}{
			{503, []string{plainRequest}, 0},
			{200, []string{vip, vip}, 2},
			{503, []string{plainRequest}, 2},
			{200, []string{vip, vip, vip}, 5},
			{503, []string{plainRequest}, 5},
		} {
			if ask(step.status, step.requests...); seen != step.seen {
				t.Errorf("step %d: net/http saw %d requests, want %d", i, seen, step.seen)
			}
		}
	})
}

// TestLooks: the listener reads ahead only while requests are rejected.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := half(t, echo)
		h.looks.Store(0)
		if _, seen := play(t, newSender(plainRequest, plainRequest, plainRequest), h, true); seen != 1 {
			t.Errorf("net/http saw %d requests, want the first, whose rejection shows that there is reason to look", seen)
		}
		vip := strings.Repeat("GET /vip HTTP/1.1\r\nHost: x\r\n\r\n|", lookOn+1)
		if _, seen := play(t, newSender(strings.Split(vip, "|")...), h, true); seen != lookOn+1 || h.looks.Load() != 0 {
			t.Errorf("%d seen, %d looks left", seen, h.looks.Load())
		}
	})
}

// TestEarlyRejectionAllocatesNothing, whatever the length of the path, with a part of a body, and for labels that
// clients use.
func TestEarlyRejectionAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("pools lose what they hold")
	}
	inside := swamped
	inside.Trust = internal.Trust
	for name, handler := range map[string]*Handler{
		"edge":       mustHandler(t, echo, swamped, HandlerConfig{HealthPaths: []string{"/healthz"}}),
		"internal":   mustHandler(t, echo, inside, HandlerConfig{HealthPaths: []string{"/healthz"}}),
		"classified": mustHandler(t, echo, swamped, HandlerConfig{Classify: func(r *http.Request) spillway.Call { return spillway.Call{Key: r.Method} }}),
	} {
		arrive := arrivals((*earlyGate)(handler))
		handler.looks.Store(lookOn)
		for _, class := range []string{"SHEDDABLE", "SHEDDABLE_PLUS", "CRITICAL"} {
			fields := " /api/v1/customers/12345678/orders/87654321?q=go HTTP/1.1\r\nHost: example.com:8080\r\n" +
				headerCriticality + ": " + class + "\r\n" + headerDeadline + ": 250\r\n"
			for _, request := range []string{"GET" + fields + "\r\n", "POST" + fields + "Content-Length: 300\r\n\r\n" + strings.Repeat("x", 200)} {
				text, rest := []byte(request), []byte(strings.Repeat("x", 100))
				if strings.HasPrefix(request, "GET") {
					rest = nil
				}
				n := testing.AllocsPerRun(100, func() {
					if !arrive(text, rest) {
						t.Fatal("admitted")
					}
				})
				if n != 0 {
					t.Errorf("%s, %s: %v allocations for %.4s", name, class, n, request)
				}
			}
		}
	}
}

// TestEarlyRejectionHasTheID: an observer may give the answer an id. The next request does not have it, and neither has one
// that is not read as a whole.
func TestEarlyRejectionHasTheID(t *testing.T) {
	const get = "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
	synctest.Test(t, func(t *testing.T) {
		config := swamped
		config.Observer = spillway.ObserverFunc(func(e spillway.Event) {
			if h, ok := e.Context.Value(claims.HeadKey{}).(*claims.Head); ok && h.Request.URL.Path != "/none" {
				h.ID = "id-" + h.Request.URL.Path[1:]
			}
		})
		h := mustHandler(t, echo, config, HandlerConfig{Classify: func(*http.Request) spillway.Call { return spillway.Call{} }})
		h.looks.Store(lookOn)
		got, seen := play(t, newSender(fmt.Sprintf(get, "a"), fmt.Sprintf(get, "b"), fmt.Sprintf(get, "none"), fmt.Sprintf(get, "b")), h, true)
		a, b := strings.Count(got, "\r\nX-Request-Id: id-a\r\n"), strings.Count(got, "\r\nX-Request-Id: id-b\r\n")
		if seen != 0 || a != 1 || b != 2 || strings.Count(got, "X-Request-Id") != 3 || strings.Count(got, "HTTP/1.1 503") != 4 {
			t.Errorf("net/http saw %d requests; answers\n%s", seen, got)
		}
		nothingLeft(t, h)
	})
}

func BenchmarkEarlyRejection(b *testing.B) {
	const text = "GET /search?q=go HTTP/1.1\r\nHost: example.com:8080\r\nUser-Agent: Go-http-client/1.1\r\n" +
		headerCriticality + ": SHEDDABLE\r\nAccept-Encoding: gzip\r\n\r\n"
	mux := http.NewServeMux()
	mux.Handle("/", echo)
	for _, bench := range []struct {
		name    string
		handler *Handler
	}{
		{"plain", mustHandler(b, echo, swamped, HandlerConfig{})},
		{"classified", half(b, echo)},
		{"mux", mustHandler(b, mux, swamped, HandlerConfig{})},
	} {
		b.Run(bench.name, func(b *testing.B) {
			arrive, request := arrivals((*earlyGate)(bench.handler)), []byte(text)
			bench.handler.looks.Store(1 << 40)
			b.ReportAllocs()
			for b.Loop() {
				arrive(request, nil)
			}
		})
	}
}
