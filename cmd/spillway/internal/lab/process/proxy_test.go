package process

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// beProxy makes this test program act as the proxy for its parent. It answers each
// request with the text of its configuration.
func beProxy(args []string) int {
	file := strings.TrimPrefix(args[0], "--config=")
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "bad:1") {
		fmt.Fprintln(os.Stderr, "no good configuration")
		return 2
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 3
	}
	if args[1] != "--ready-fd=3" || (Ready{Listeners: map[string]string{proxyListener: ln.Addr().String()}}).Send(readyFD) != nil {
		return 4
	}
	_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	return 0
}

func TestStartProxy(t *testing.T) {
	p, err := StartProxy(t.Context(), &Process{URL: "http://127.0.0.1:4711/"}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	status, err := call(t, p)
	if err != nil || status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	text, err := os.ReadFile(p.scratch + "/proxy.yaml")
	if err != nil || !strings.Contains(string(text), "mode: enforce") || !strings.Contains(string(text), `"127.0.0.1:4711"`) {
		t.Errorf("it was told %q, %v", text, err)
	}
	p.Stop()
	p.Stop() // may be called again
	if _, err := os.Stat(p.scratch); !os.IsNotExist(err) {
		t.Errorf("%s is left behind: %v", p.scratch, err)
	}
	if !isGone(p) {
		t.Error("the proxy is still there")
	}
}

func TestStartProxyThatDoesNotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p, err := StartProxy(t.Context(), &Process{URL: "http://bad:1/"}, false)
	if err == nil {
		p.Stop()
		t.Fatal("it has started")
	}
	if !strings.Contains(err.Error(), "it said: no good configuration") {
		t.Errorf("error: %v", err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
