package httpproxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestAnswersStayAsTheyAre: an answer without a type gets none, and a switch of protocols after a
// POST no length.
func TestAnswersStayAsTheyAre(t *testing.T) {
	quiet(t)
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html><script>")
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = c.Close()
	}), nil)
	address := strings.TrimPrefix(url, "http://")
	if answer := exchange(t, address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); strings.Contains(answer, "Content-Type") || !strings.HasSuffix(answer, "<script>") {
		t.Errorf("%q, want no type", answer)
	}
	if resp, body := do(t, client(t, true), http.MethodGet, url, ""); resp.Header["Content-Type"] != nil || body == "" {
		t.Errorf("HTTP/2: %v, want no type", resp.Header)
	}
	answer := exchange(t, address, "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 101 ") || strings.Contains(answer, "Content-Length") {
		t.Errorf("%q, want 101 without a length", answer)
	}
}

// TestTrailersOfRequests: a trailer that is announced comes.
func TestTrailersOfRequests(t *testing.T) {
	quiet(t)
	got := make(chan string, 1)
	url, _ := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer.Get("X-Checksum")
	}), nil)
	exchange(t, strings.TrimPrefix(url, "http://"),
		"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n3\r\nabc\r\n0\r\nX-Checksum: 17\r\n\r\n")
	if sum := <-got; sum != "17" {
		t.Errorf("the trailer is %q, want 17", sum)
	}
}

// saying returns the address of an upstream that answers its first request with a text.
func saying(t *testing.T, text string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); serving.Wait() }) // it may have ended
	serving.Go(func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, text) // the test reads what the proxy makes of it
		}
	})
	return ln.Addr().String()
}

// TestInformationalAnswersAreBounded: an upstream can send many before its answer.
func TestInformationalAnswersAreBounded(t *testing.T) {
	quiet(t)
	p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 1000)+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")))
	answer := exchange(t, p.Addr("").String(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if n := strings.Count(answer, " 102 "); n != 100 || !strings.HasSuffix(answer, "ok") {
		t.Error(strconv.Itoa(n), "answers before the last one, want 100:", answer[max(0, len(answer)-100):])
	}
}

// TestImpossibleStatus: an upstream may answer with a status that net/http takes for a mistake of the program, and panics.
func TestImpossibleStatus(t *testing.T) {
	quiet(t)
	p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, "HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n")))
	answer := exchange(t, p.Addr("").String(), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 502 ") {
		t.Errorf("the answer is %q, want 502", answer)
	}
}

// TestAnswersWithoutContentHaveNoLength: by HTTP/2 a length without content is an error for some clients. By HTTP/1.1 net/http
// leaves it out.
func TestAnswersWithoutContentHaveNoLength(t *testing.T) {
	quiet(t)
	for _, status := range []string{"204 No Content", "304 Not Modified"} {
		p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, "HTTP/1.1 "+status+"\r\nContent-Length: 3\r\nConnection: close\r\n\r\n")))
		resp, _ := do(t, client(t, true), http.MethodGet, "http://"+p.Addr("").String(), "")
		if resp.Status != status || resp.Header.Get("Content-Length") != "" {
			t.Errorf("%s with the length %q, want %s without one", resp.Status, resp.Header.Get("Content-Length"), status)
		}
	}
}
