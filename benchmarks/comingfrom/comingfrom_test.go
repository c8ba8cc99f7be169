package comingfrom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"
)

// TestPages: each program on a page is one that this package compiles.
func TestPages(t *testing.T) {
	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	for page, file := range map[string]string{"go-zero": "gozero.go", "kratos": "kratos.go"} {
		text, err := os.ReadFile("../../docs/coming-from/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		programs := block.FindAllStringSubmatch(string(text), -1)
		if len(programs) != 2 {
			t.Errorf("%s has %d programs, want 2", page, len(programs))
		}
		for _, p := range programs {
			if !strings.Contains(string(code), p[1]) {
				t.Errorf("%s.md has a program that is not in %s:\n%s", page, file, p[1])
			}
		}
	}
}

// TestServers: both handlers serve while there is no overload.
func TestServers(t *testing.T) {
	logx.Disable()
	stat.SetReporter(nil)
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	after, err := afterShedder(hello)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	for name, h := range map[string]http.Handler{"before": beforeShedder(hello), "after": after} {
		for _, path := range []string{"/", "/report", "/healthz"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			if w.Code != http.StatusOK || w.Body.String() != "hello" {
				t.Errorf("%s %s: %d %s", name, path, w.Code, w.Body)
			}
		}
	}
}

// TestClients: both clients send less to a server that rejects all.
func TestClients(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	after, err := afterAegis()
	if err != nil {
		t.Fatal(err)
	}
	for name, get := range map[string]func(string) (*http.Response, error){"before": beforeAegis(), "after": after} {
		asked = 0
		const calls = 1000
		for range calls {
			if resp, err := get(server.URL); err == nil {
				_ = resp.Body.Close()
			}
		}
		if asked == 0 || asked > calls/2 {
			t.Errorf("%s: %d of %d calls were sent", name, asked, calls)
		}
	}
}
