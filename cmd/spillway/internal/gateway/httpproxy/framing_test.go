package httpproxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestTwoFramingsEndTheConnection: RFC 9112, section 6.1. A chunked request alone does not.
func TestTwoFramingsEndTheConnection(t *testing.T) {
	quiet(t)
	var mu sync.Mutex
	var paths []string
	url, _ := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
	}), nil)
	const end = "0\r\n\r\n"
	for _, row := range []struct {
		headers string
		want    int
	}{
		{"Content-Length: 6\r\nTransfer-Encoding: chunked", 1}, {"Transfer-Encoding: chunked\r\ncontent-LENGTH:6", 1}, {"Transfer-Encoding: chunked", 2},
	} {
		paths = nil
		answers := exchange(t, strings.TrimPrefix(url, "http://"),
			"POST /first HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n\r\n"+end+"GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		mu.Lock()
		if n := strings.Count(answers, "HTTP/1.1 200 OK"); n != row.want || len(paths) != row.want || !strings.Contains(answers, "Connection: close") {
			t.Errorf("%q: %q arrive, answers %q, want %d", row.headers, paths, answers, row.want)
		}
		mu.Unlock()
	}
}
