package httpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// writtenTargets are targets that a proxy must send on as they were written: RFC 9110, section 7.7.
var writtenTargets = []string{
	"/fetch/https://example.com/a.png", "/bucket//key/.", "/a%2Fb%7e%7E", "/a|b%2fc{d}^\"", "/x?", "/x?a=1;b=%zz&&c??", "/..a/./b", "//a//b", "/\xc3\xa9",
}

// TestTargetsAreSentAsWritten sends them by HTTP/1.1 to endpoints of both versions. The first attempt of each
// is rejected, so that the second one shows that a retry is no different.
func TestTargetsAreSentAsWritten(t *testing.T) {
	quiet(t)
	for _, second := range []bool{false, true} {
		var mu sync.Mutex
		var seen []string
		url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if seen = append(seen, r.RequestURI); len(seen)%2 == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}), func(c *config.Config) {
			c.Mode = "enforce"
			c.Clusters[0].Retry.Ratio = 1
			if second {
				c.Clusters[0].Protocol = "http2"
			}
			c.Routes = []config.Route{{Path: "/healthz", Exempt: true}, {}}
		})
		for _, target := range writtenTargets {
			seen = nil
			answer := exchange(t, strings.TrimPrefix(url, "http://"), "GET "+target+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			mu.Lock()
			if len(seen) != 2 || seen[0] != target || seen[1] != target {
				t.Errorf("%q is sent on as %q, HTTP/2: %v: %.100q", target, seen, second, answer)
			}
			mu.Unlock()
		}
	}
}

// exchange sends text on a new connection, and returns all that comes back.
func exchange(t testing.TB, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(bufio.NewReader(c))
	return string(all)
}

// TestAmbiguousTargets: what the upstream may read as the path of another route is rejected, by
// HTTP/1.1 and HTTP/2, and so is what is no path.
func TestAmbiguousTargets(t *testing.T) {
	quiet(t)
	url, _ := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%q arrives", r.RequestURI)
	}), func(c *config.Config) {
		c.Routes = []config.Route{{Path: "/public/"}, {Path: "/report", Criticality: "SHEDDABLE"}, {Path: "/x"}}
	})
	for _, target := range []string{"/public/../admin", "/public/%2E./admin", "/public/..;/admin", "//report", "/x/../report", "/x#/report", "/public%2Fadmin"} {
		answer := exchange(t, strings.TrimPrefix(url, "http://"), fmt.Sprintf("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", target))
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !strings.Contains(answer, "rejected: bad_request (") {
			t.Errorf("%q: %q", target, answer)
		}
		if strings.Contains(target, "#") {
			continue // the client leaves it out
		}
		if resp, body := do(t, client(t, true), http.MethodGet, url+target, ""); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%q by HTTP/2: %s, %q", target, resp.Status, body)
		}
	}
}
