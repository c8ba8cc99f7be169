package httpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/internal/admin/decisions"
)

// TestRequestID: the upstream and the client get the same id, once. At an edge it is that of the client
// only if the configuration trusts it. What the upstream says of the id is not passed on.
func TestRequestID(t *testing.T) {
	quiet(t)
	var got []string
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header[message.RequestID]
		w.Header()[message.RequestID] = []string{"other", "another"}
		if r.URL.Path == "/early" {
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.WriteHeader(http.StatusOK)
	})
	for _, row := range []struct {
		boundary        string
		preserve, kept  bool
		path, came, why string
	}{
		{boundary: "edge", path: "/", came: "id-1"},
		{boundary: "edge", path: "/early", came: "id-1"},
		{boundary: "edge", path: "/"},
		{boundary: "edge", preserve: true, path: "/", came: "id-1", kept: true},
		{boundary: "edge", preserve: true, path: "/", came: "two words"},
		{boundary: "internal", path: "/", came: "id-1", kept: true},
		{boundary: "internal", path: "/"},
	} {
		url, _ := front(t, upstream, func(c *config.Config) {
			l := &c.Listeners[0]
			l.Boundary, l.Peers, l.PreserveRequestID = row.boundary, []string{"127.0.0.0/8"}, row.preserve
		})
		for _, second := range []bool{false, true} {
			got = nil
			var send []string
			if row.came != "" {
				send = []string{message.RequestID, row.came}
			}
			resp, _ := do(t, client(t, second), http.MethodGet, url+row.path, "", send...)
			back := resp.Header[message.RequestID]
			if len(got) != 1 || len(back) != 1 || got[0] != back[0] || (got[0] == row.came) != row.kept || len(got[0]) != 36 && !row.kept {
				t.Errorf("%+v, HTTP/2 %v: %q is sent, %q is returned", row, second, got, back)
			}
		}
	}
}

// TestEarlyHints: an answer with a status of 1xx passes on hints, and nothing that the proxy takes out of the final one.
func TestEarlyHints(t *testing.T) {
	quiet(t)
	upstream := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{message.RequestID, costHeader, reasonHeader, scopeHeader, "X-Request-Accept-Ratio"} {
			w.Header().Set(name, "1")
		}
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
	})
	url, _ := front(t, upstream, func(*config.Config) {})
	for _, second := range []bool{false, true} {
		var hints []http.Header
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			hints = append(hints, http.Header(h))
			return nil
		}})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client(t, second).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(hints) != 1 || len(hints[0]) != 1 || hints[0].Get("Link") != "</a.css>" {
			t.Errorf("HTTP/2 %v: hints %v, want the link alone", second, hints)
		}
	}
}

// TestRequestIDOfRejections: an answer of the proxy itself has an id, too, and so has one of a gate.
func TestRequestIDOfRejections(t *testing.T) {
	quiet(t)
	address := closedAddress
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode = "enforce"
	c.Routes = []config.Route{{Path: "/api/", Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
	c.Clusters[0].Quota = &config.Quota{DefaultLimit: config.Limit{Rate: 0.001}}
	p := start(t, c)
	statuses := make(map[int]int)
	for _, path := range []string{"/none", "/api/a", "/api/b", "/api/c", "/api/d"} {
		resp, _ := do(t, client(t, false), http.MethodGet, "http://"+p.Addr("").String()+path, "", message.RequestID, "mine", "X-Customer", "acme")
		statuses[resp.StatusCode]++
		if id := resp.Header[message.RequestID]; len(id) != 1 || len(id[0]) != 36 || strings.Contains(id[0], "mine") {
			t.Errorf("%s: %d with the id %q", path, resp.StatusCode, id)
		}
	}
	if statuses[http.StatusNotFound] != 1 || statuses[http.StatusTooManyRequests] == 0 || statuses[http.StatusBadGateway] == 0 {
		t.Errorf("statuses: %v, want one of each kind", statuses)
	}
}

// TestRequestIDOfEarlyRejections: a request that is rejected before net/http has read it has an id, too: its own, which the
// decisions have as well, and at an edge never that of the client.
func TestRequestIDOfEarlyRejections(t *testing.T) {
	quiet(t)
	for _, boundary := range []string{"edge", "internal"} {
		address, log := decided(t, http.NotFoundHandler(), func(c *config.Config) {
			l := &c.Listeners[0]
			l.Boundary, l.Peers, l.PreserveRequestID = boundary, []string{"127.0.0.0/8"}, false
			c.Clusters[0].RateLimit = config.RateLimit{Rate: 0.001}
		})
		var conn net.Conn
		early, ids := 0, make(map[string]bool)
		for i := range 20 {
			if conn == nil {
				var err error
				if conn, err = net.Dial("tcp", address); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Fprintf(conn, "GET /api/a HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine-%d\r\n\r\n", i%2)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.Header["Date"] == nil { // net/http writes one
				early++
			}
			if resp.Close { // some rejections end the connection
				conn.Close()
				conn = nil
			}
			id := resp.Header[message.RequestID]
			if len(id) != 1 || boundary == "edge" && (len(id[0]) != 36 || ids[id[0]]) || boundary == "internal" && id[0] != fmt.Sprint("mine-", i%2) {
				t.Fatalf("%s: request %d has the id %q", boundary, i, id)
			}
			ids[id[0]] = true
			if all, _ := log.Read(&decisions.Filter{RequestID: id[0]}, 1); len(all) == 0 && resp.StatusCode == http.StatusServiceUnavailable {
				t.Errorf("%s: the decision has not the id %q", boundary, id)
			}
		}
		if conn != nil {
			conn.Close()
		}
		if early == 0 {
			t.Errorf("%s: no request was rejected early", boundary)
		}
	}
}
