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
	h := New(Rules{Change: File(file)}, slog.New(slog.NewTextHandler(&log, nil))).Change(func(http.ResponseWriter, *http.Request) {
		t.Error("a wrong token is accepted")
	})
	began := time.Now()
	for i := range 500 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/mode", nil)
		r.Header.Set("Authorization", fmt.Sprintf("Bearer %016d", i))
		h(httptest.NewRecorder(), r)
	}
	if n, most := strings.Count(log.String(), "rejected"), int(time.Since(began)/time.Second)+1; n < 1 || n > most {
		t.Errorf("%d of 500 failures are logged, want 1 to %d", n, most)
	}
}
