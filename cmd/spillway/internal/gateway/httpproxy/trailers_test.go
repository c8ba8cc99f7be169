package httpproxy

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestTrailersOfClients: what an edge removes from headers it removes from trailers, too, announced or not, and what frames
// a message belongs in no trailer. At an internal boundary trailers of services pass.
func TestTrailersOfClients(t *testing.T) {
	quiet(t)
	const text = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: Checksum, X-Forwarded-For\r\n\r\n" +
		"1\r\na\r\n0\r\nChecksum: 1\r\nX-Forwarded-For: 1\r\nX_envoy_internal: 1\r\n" +
		"Baggage: criticality=CRITICAL_PLUS\r\nTransfer-Encoding: chunked\r\na b: 1\r\n\r\n"
	for boundary, want := range map[string][]string{"edge": {"Checksum"}, "internal": {"Baggage", "Checksum", "X-Forwarded-For", "X_envoy_internal"}} {
		for _, protocol := range []string{"http1", "http2"} {
			got := make(chan http.Header, 1)
			_, p := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				got <- r.Trailer
			}), func(c *config.Config) {
				c.Listeners[0].Boundary, c.Clusters[0].Protocol = boundary, protocol
				if boundary == "internal" {
					c.Listeners[0].Peers = []string{"127.0.0.0/8"}
				}
			})
			if answer := exchange(t, p.Addr("").String(), text); !strings.HasPrefix(answer, "HTTP/1.1 200") {
				t.Fatal(answer)
			}
			names := slices.Sorted(maps.Keys(<-got))
			if protocol == "http2" { // a server of net/http has those only that were announced
				want = slices.DeleteFunc(slices.Clone(want), func(name string) bool { return name != "Checksum" && name != "X-Forwarded-For" })
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s, %s: the trailers %q arrive, want %q", boundary, protocol, names, want)
			}
		}
	}
}

// TestTrailersOfUpstreams: costs and reasons of rejections leave the proxy in trailers no more than in headers.
func TestTrailersOfUpstreams(t *testing.T) {
	quiet(t)
	for _, announced := range []bool{true, false} {
		for _, second := range []bool{true, false} {
			url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				all := map[string]string{"X-Request-Cost": "3", reasonHeader: "shed: 7 of 9", "Grpc-Status": "14", "Grpc-Message": "shed: 7 of 9"}
				prefix := http.TrailerPrefix
				if announced {
					w.Header()["Trailer"], prefix = slices.Collect(maps.Keys(all)), ""
				}
				_ = http.NewResponseController(w).Flush() // else there is a length, and by HTTP/1.1 no trailer
				for name, value := range all {
					w.Header().Set(prefix+name, value)
				}
			}), func(c *config.Config) {
				if second {
					c.Clusters[0].Protocol = "http2"
				}
			})
			resp, _ := do(t, client(t, second), http.MethodGet, url, "")
			h := resp.Trailer
			if h.Get("X-Request-Cost") != "" || h.Get(reasonHeader) != coarse || h.Get("Grpc-Message") != "overloaded" || h.Get("Grpc-Status") != "14" {
				t.Errorf("HTTP/2: %v, announced: %v: the client gets %v", second, announced, h)
			}
		}
	}
}

// TestMalformedTrailersOfUpstreams: what is no trailer is not sent on. By HTTP/2 net/http would never end an answer whose only
// trailer has a malformed name.
func TestMalformedTrailersOfUpstreams(t *testing.T) {
	quiet(t)
	for _, row := range []struct{ trailers, want string }{
		{"a b: 1\r\n", ""}, {"Transfer-Encoding: chunked\r\n", ""}, {"a b: 1\r\nChecksum: 1\r\nHost: b\r\n", "Checksum"},
	} {
		for _, second := range []bool{false, true} {
			address := saying(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Checksum\r\n\r\n1\r\na\r\n0\r\n"+row.trailers+"\r\n")
			p := start(t, config.ForUpstream("127.0.0.1:0", address))
			x := client(t, second)
			x.Timeout = 2 * time.Second
			resp, _ := do(t, x, http.MethodGet, "http://"+p.Addr("").String(), "")
			maps.DeleteFunc(resp.Trailer, func(_ string, values []string) bool { return values == nil })
			if got := strings.Join(slices.Sorted(maps.Keys(resp.Trailer)), " "); got != row.want {
				t.Errorf("HTTP/2: %v: of %q the client gets %q, want %q", second, row.trailers, got, row.want)
			}
		}
	}
}
