package httpproxy

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// BenchmarkRequest measures one request on an open connection, without a proxy, with a plain
// ReverseProxy, and with this proxy.
func BenchmarkRequest(b *testing.B) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
	address, _ := upstreamAt(b, h)
	direct := "http://" + address
	u, err := url.Parse(direct)
	if err != nil {
		b.Fatal(err)
	}
	plain, _ := upstreamAt(b, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, BufferPool: buffers})
	targets := []struct{ name, url string }{{"direct", direct}, {"reverse-proxy", "http://" + plain}}
	for _, mode := range []config.Mode{"off", "observe", "enforce"} {
		c := config.ForUpstream("127.0.0.1:0", address)
		c.Mode = mode
		targets = append(targets, struct{ name, url string }{"spillway-" + string(mode), "http://" + start(b, c).Addr("").String()})
	}
	for _, target := range targets {
		b.Run(target.name, func(b *testing.B) {
			x := client(b, false)
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if resp, body := do(b, x, http.MethodPost, target.url, strings.Repeat("x", 64)); resp.StatusCode >= 500 || body == "" && resp.ContentLength != 0 {
						b.Error(resp.Status)
						return
					}
				}
			})
		})
	}
}
