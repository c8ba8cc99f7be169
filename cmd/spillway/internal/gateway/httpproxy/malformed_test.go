package httpproxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

// answered returns the status of the answer to a HEADERS frame with these fields on a new connection.
func answered(t *testing.T, p *Proxy, fields ...string) string {
	t.Helper()
	c := dial(t, p)
	head := gatewaytest.Frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, gatewaytest.Fields(fields...))
	fmt.Fprint(c, http2.ClientPreface+gatewaytest.Frame(http2.FrameSettings, 0, 0, "")+head)
	in := http2.NewFramer(nil, c)
	in.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		f, err := in.ReadFrame()
		if err != nil {
			return err.Error()
		}
		if h, ok := f.(*http2.MetaHeadersFrame); ok {
			return h.PseudoValue("status")
		}
	}
}

// TestMalformedRequestsAreNotSent: by HTTP/2 a client can send what net/http does not look at: a target with spaces would be a
// part of the request line to an upstream of HTTP/1.1. What net/http does not send itself would be a failure of the upstream.
func TestMalformedRequestsAreNotSent(t *testing.T) {
	quiet(t)
	_, p := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/well-formed" {
			t.Errorf("%s %s arrives", r.Method, r.RequestURI)
		}
	}), nil)
	for _, row := range []struct{ method, path, host, trailer string }{
		{"GET", "/a HTTP/1.0", "a", ""},
		{"GET", "/a?b HTTP/1.0", "a", ""},
		{"GET", "/ /", "a", ""},
		{"GET / HTTP/1.1", "/", "a", ""},
		{"GET", "/", "a b", ""},
		{"POST", "/", "a", "not a token"},
	} {
		fields := []string{":method", row.method, ":scheme", "http", ":path", row.path, ":authority", row.host}
		if row.trailer != "" {
			fields = append(fields, "trailer", row.trailer)
		}
		if status := answered(t, p, fields...); status != "400" {
			t.Errorf("%q is answered with %s", row, status)
		}
	}
	for trailer, want := range map[string]string{"not a token": "400", "token": "200"} {
		answer := exchange(t, p.Addr("").String(),
			"POST /well-formed HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: "+trailer+"\r\n\r\n0\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 "+want) {
			t.Errorf("the trailer %q is answered with %q", trailer, answer)
		}
	}
	x := p.Stats(time.Now()).Clusters["upstream"].Endpoints[0]
	if x.Total != 1 || x.Errors != 0 {
		t.Errorf("%d are sent, of which %d fail, want that the well-formed one is", x.Total, x.Errors)
	}
}
