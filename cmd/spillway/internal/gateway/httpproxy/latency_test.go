package httpproxy

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/slow"
)

// TestLatencyThatCounts: the latency of a request counts that has arrived as a whole and is served. What a client
// sends slowly, what fails, what was rejected, and a route of long polls do not count.
func TestLatencyThatCounts(t *testing.T) {
	quiet(t)
	for name, row := range map[string]struct {
		path, body string
		counts     bool
	}{
		"a request":              {"/", "", true},
		"with a short body":      {"/", "short", true},
		"with a body that waits": {"/", strings.Repeat("x", shortBody+1), false},
		"of a route that varies": {"/poll", "", false},
		"that fails":             {"/fails", "", false},
		"that is rejected":       {"/none", "", false},
	} {
		for _, second := range []bool{false, true} {
			url, book := booked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/fails" {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}), func(c *config.Config) {
				c.Routes = []config.Route{{Path: "/poll", LatencyVaries: true}, {Path: "/none", Headers: map[string]string{"X": "1"}}, {Path: "/fails"}, {Path: "/", Exact: true}}
			})
			method := http.MethodGet
			if row.body != "" {
				method = http.MethodPost
			}
			do(t, client(t, second), method, url+row.path, row.body)
			settled(t, book, 1)
			got := placeOfOne(t, book)
			if counted := got.Latency != (slow.Totals{}); counted != row.counts {
				t.Errorf("%s, HTTP/2 %v: counted %v, want %v: %+v", name, second, counted, row.counts, got.Place)
			}
		}
	}
}

// placeOfOne returns the counts of the only request, which are there soon after its end.
func placeOfOne(t *testing.T, book *accounts.Book) accounts.PlaceTotal {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		for _, p := range book.Places() {
			if p.Ended != [accounts.Count]uint64{} {
				return p
			}
		}
	}
	t.Fatal("no place has a request")
	return accounts.PlaceTotal{}
}
