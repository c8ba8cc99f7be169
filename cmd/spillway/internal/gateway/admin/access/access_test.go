package access

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFailuresAreLoggedAtABoundedRate guesses tokens.
func TestFailuresAreLoggedAtABoundedRate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	h := New(Config{TokenFile: file}, slog.New(slog.NewTextHandler(&log, nil))).Change(func(http.ResponseWriter, *http.Request) {
		t.Error("a wrong token is accepted")
	})
	began := time.Now()
	for i := range 500 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/mode", nil)
		r.Header.Set("Authorization", fmt.Sprintf("Bearer %016d", i))
		h(httptest.NewRecorder(), r)
	}
	if n, most := strings.Count(log.String(), "rejected"), int(time.Since(began)/failureInterval)+1; n < 1 || n > most {
		t.Errorf("%d of 500 failures are logged, want 1 to %d", n, most)
	}
	var f failures
	start := time.Now()
	for _, row := range []struct {
		at   time.Duration
		more int
		ok   bool
	}{{0, 0, true}, {1, 0, false}, {failureInterval - 1, 0, false}, {failureInterval, 2, true}, {2 * failureInterval, 0, true}} {
		if more, ok := f.log(start.Add(row.at)); more != row.more || ok != row.ok {
			t.Errorf("at %v: %d, %v, want %d, %v", row.at, more, ok, row.more, row.ok)
		}
	}
}
