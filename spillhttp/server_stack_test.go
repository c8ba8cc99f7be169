package spillhttp

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/seed90641741/spillway/internal/race"
)

// moves reports whether the stack of a new goroutine, of the size that growStack leaves, moves
// while h decides on r. A variable on a stack has another address after that.
func moves(h http.Handler, w http.ResponseWriter, r *http.Request) bool {
	moved := make(chan bool)
	go func() {
		growStack(false)
		var here byte
		before := uintptr(unsafe.Pointer(&here))
		h.ServeHTTP(w, r)
		moved <- uintptr(unsafe.Pointer(&here)) != before
	}()
	return <-moved
}

// TestDecisionStack: a rejection and an admission need no more of the stack than they prepare.
func TestDecisionStack(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector needs more of the stack")
	}
	runtime.GC() // which may move stacks
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, row := range map[string]struct {
		handler http.Handler
		request *http.Request
	}{
		"rejected": {mustHandler(t, bare, swamped, HandlerConfig{}), incoming(t, headerCriticality, "SHEDDABLE")},
		"served":   {mustHandler(t, bare, internal, HandlerConfig{}), incoming(t, headerCriticality, "CRITICAL_PLUS", headerDeadline, "5000")},
	} {
		w := nowhere{http.Header{}}
		row.handler.ServeHTTP(w, row.request) // makes what is made once
		if row.request.ProtoMajor != 1 {
			t.Fatal("the request prepares the stack by itself")
		}
		if moves(row.handler, w, row.request) {
			t.Errorf("%s: the stack moves although it was prepared", name)
		}
	}
}
