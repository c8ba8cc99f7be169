package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/ratelimit"
)

func TestLog(t *testing.T) {
	var out bytes.Buffer
	h, logs, err := newHandler(slog.New(slog.NewTextHandler(&out, nil)), one)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		r := httptest.NewRequest(http.MethodGet, "/carts/7", nil)
		r.Header.Set("X-Request-Id", "r-17")
		if code, body := get(t, h, r); code != want {
			t.Errorf("%d %s, want %d", code, body, want)
		}
	}
	logs.Flush()
	const want = `level=WARN msg="request rejected" policy=ratelimit reason=rate_limit route="GET /carts/{id}" criticality=CRITICAL`
	if line := out.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, want) || !strings.Contains(line, " request_id=r-17 do=") {
		t.Errorf("got %s", line)
	}
}

// one admits one request, and the next after 100 s.
var one = ratelimit.Config{Rate: 0.01, BurstSeconds: 100}

// get returns the status and the answer.
func get(t *testing.T, h http.Handler, r *http.Request) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestLines(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\t// added\n")
	if len(parts) != 3 || strings.Count(parts[1], "\n") > 15 {
		t.Errorf("%d parts, want 15 added lines at most", len(parts))
	}
}
