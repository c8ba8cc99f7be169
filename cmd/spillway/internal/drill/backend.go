package drill

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"
)

// A Backend is the server that a drill overloads. It runs in a process of its
// own, on one CPU, and knows nothing of Spillway: a plain net/http handler that
// burns the same amount of CPU for each call.
type Backend struct {
	Port    int           `help:"Port on 127.0.0.1; 0 is any free one."`
	Service time.Duration `help:"CPU time to burn for one call." default:"1.5ms"`
	Rounds  int           `help:"Work of one call in rounds, as an earlier backend calibrated it; 0 calibrates."`
}

// hello is the one line by which the backend tells its parent that it is there.
type hello struct {
	Addr   string `json:"addr"`
	Rounds int    `json:"rounds"`
	Error  string `json:"error"`
}

// Serve serves until in ends, which it does when the parent is gone, and then
// exits the process. It first writes a hello to out.
func (b Backend) Serve(in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(gcPercent)
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // may go to the whole group; the parent decides
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", b.Port))
	if err != nil {
		return json.NewEncoder(out).Encode(hello{Error: err.Error()})
	}
	if b.Rounds == 0 {
		b.Rounds = calibrate(b.Service)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(0)
	}()
	if err := json.NewEncoder(out).Encode(hello{Addr: ln.Addr().String(), Rounds: b.Rounds}); err != nil {
		return err
	}
	return http.Serve(ln, b.handler())
}

// handler burns the work of a call. While thousands of calls wait for the only
// CPU, so does the goroutine that watches for the parent: each call looks, too.
func (b Backend) handler() http.Handler {
	parent := os.Getppid()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if os.Getppid() != parent {
			os.Exit(0)
		}
		burn(b.Rounds)
		_, _ = io.WriteString(w, "done\n")
	})
}

// sink keeps the compiler from seeing that the work is for nothing.
var sink atomic.Uint64

// burn does a fixed amount of work: rounds of xorshift, however long they take.
// A fixed time instead would let an overloaded backend do many calls at once.
func burn(rounds int) {
	x := uint64(88172645463325252)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
}

// calibrate returns how many rounds take d on this machine when nothing
// disturbs them: the fastest of several tries.
func calibrate(d time.Duration) int {
	const tries, rounds = 20, 1_000_000
	best := time.Duration(1 << 62)
	for range tries {
		start := time.Now()
		burn(rounds)
		best = min(best, time.Since(start))
	}
	return max(1, int(float64(rounds)*float64(d)/float64(best)))
}
