package httpproxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
)

// TestBytesOfRejections: the line of a rejected request has the length of the body that the client got, also if the
// request was rejected before net/http has read it, whatever the listener tells its clients.
func TestBytesOfRejections(t *testing.T) {
	quiet(t)
	for told, body := range map[string]string{"coarse": "rejected: overload\n", "full": "rejected: rate_limit\n", "none": ""} {
		name := filepath.Join(t.TempDir(), "access.json")
		log, err := logs.OpenAccessLog(&config.Access{File: name, MaxBytes: 1 << 20, Sample: 1, SampleLost: 1, Rate: 1000})
		if err != nil {
			t.Fatal(err)
		}
		upstream, _ := upstreamAt(t, http.NotFoundHandler())
		c := config.ForUpstream("127.0.0.1:0", upstream)
		c.Mode, c.Listeners[0].Reasons, c.Clusters[0].RateLimit = "enforce", told, config.RateLimit{Rate: 0.001}
		p, err := Start(t.Context(), c, Config{})
		if err != nil {
			t.Fatal(err)
		}
		p.SetAccessLog(log)
		early := rejectSome(t, p.Addr("").String(), body)
		_ = p.Close() // what matters is the log
		p.SetAccessLog(nil).Close()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rejected := 0
		for line := range strings.Lines(string(text)) {
			var x logs.Record
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			want := len(body)
			if x.Method == http.MethodHead {
				want = 0
			}
			if x.Account != "rejected" {
				continue
			}
			if rejected++; x.Bytes != int64(want) {
				t.Errorf("%s: %d bytes, the client got %d: %s", told, x.Bytes, want, line)
			}
			if x.Settings != "clusters[upstream].rate_limit.rate" {
				t.Errorf("the settings are %q: %s", x.Settings, line)
			}
		}
		if early < 10 || rejected < 15 {
			t.Errorf("%s: %d lines of rejections, %d of them early", told, rejected, early)
		}
	}
}

// rejectSome sends requests, most of which are rejected with a body, and returns how many were rejected before net/http
// has read them.
func rejectSome(t *testing.T, address, body string) (early int) {
	t.Helper()
	var conn net.Conn
	// A request that comes before net/http knows that the one before has ended is passed to it. How many do is up to the machine.
	for i := 0; i < 20 || early < 10 && i < 400; i++ {
		if conn == nil {
			var err error
			if conn, err = net.Dial("tcp", address); err != nil {
				t.Fatal(err)
			}
		}
		method := []string{http.MethodGet, http.MethodPost, http.MethodHead}[i%3]
		length, sent := "", ""
		if method == http.MethodPost {
			length, sent = "Content-Length: 5\r\n", "hello"
		}
		fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: x\r\n%s\r\n%s", method, length, sent)
		resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		if resp.StatusCode == http.StatusServiceUnavailable && method != http.MethodHead && string(got) != body {
			t.Errorf("the client got %q, want %q", got, body)
		}
		if resp.Header["Date"] == nil { // net/http writes one
			early++
		}
		if resp.Close { // some rejections end the connection
			conn.Close()
			conn = nil
		}
	}
	if conn != nil {
		conn.Close()
	}
	return early
}
