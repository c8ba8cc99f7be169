package spillhttp

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

var measure = flag.Bool("measure", false, "assert times, too: for a quiet machine")

// TestWatchers opens many connections at once to an idle server. Each waits for an event,
// while quick calls are made on other connections. All are admitted. On an otherwise idle
// machine no request is rejected, and the calls take about the same time as without
// protection.
func TestWatchers(t *testing.T) {
	count := 100
	if *measure {
		count = 1000
	}
	for _, kind := range []string{"events", "long poll", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			alone := watch(t, kind, count, func(h http.Handler) http.Handler { return h })
			ours := watch(t, kind, count, func(h http.Handler) http.Handler {
				return mustHandler(t, h, ingress.Config{}, HandlerConfig{})
			})
			t.Logf("%d open after %v, %v without protection; quick calls take %v, %v without protection; %d rejections",
				count, ours.open, alone.open, ours.quick, alone.quick, ours.rejected)
			if *measure && (ours.open > 250*time.Millisecond || ours.quick > 2*alone.quick || ours.rejected > 0) {
				t.Error("want 250 ms, twice as long without protection, and no rejection")
			}
		})
	}
}

// watched is the result of watch.
type watched struct {
	open     time.Duration // until the last watcher was with its handler
	quick    time.Duration // median of the calls beside
	rejected int64
}

func watch(t *testing.T, kind string, count int, protect func(http.Handler) http.Handler) (w watched) {
	t.Helper()
	var open atomic.Int64
	all, news := make(chan struct{}), make(chan struct{})
	opened := func() {
		if open.Add(1) == int64(count) {
			close(all)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /watch", func(w http.ResponseWriter, r *http.Request) {
		switch kind {
		case "events":
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		case "websocket":
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_ = rw.Flush()
		}
		opened()
		<-news
	})
	mux.HandleFunc("GET /quick", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewUnstartedServer(protect(mux))
	begun := make(chan time.Time, 1) // a connection
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			select {
			case begun <- time.Now():
			default:
			}
		}
	}
	server.Start()
	defer server.Close()

	var rejected atomic.Int64
	url := server.URL + "/quick"
	quick(t, url, time.After(0), &rejected)
	<-begun
	clients := watchers(t, server.Listener.Addr().String(), kind, count)
	begin := <-begun
	took := quick(t, url, all, &rejected) // until all are open
	w.open = time.Since(begin)
	took = append(took, quick(t, url, time.After(200*time.Millisecond), &rejected)...)
	slices.Sort(took)
	w.quick = took[len(took)/2]
	close(news)
	w.rejected = rejected.Load() + clients()
	return w
}

const watchersAsked = "SPILLHTTP_WATCHERS"

// watchers starts a process with clients, and returns what waits for them to end and returns how
// many requests were rejected. In this process they would compete with the server for
// processors, in one run queue.
func watchers(t *testing.T, address, kind string, count int) func() int64 {
	t.Helper()
	c := exec.CommandContext(t.Context(), must(os.Executable()), "-test.run=^TestWatchersThemselves$", "-test.v")
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", watchersAsked, address, count, kind))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (rejected int64) {
		if err := c.Wait(); err != nil {
			t.Errorf("clients: %v\n%s", err, out.String())
		}
		_, report, _ := strings.Cut(out.String(), "REJECTED ")
		if _, err := fmt.Sscan(report, &rejected); err != nil {
			t.Error(err)
		}
		return rejected
	}
}

// TestWatchersThemselves are the clients of TestWatchers.
func TestWatchersThemselves(t *testing.T) {
	address, asked, _ := strings.Cut(os.Getenv(watchersAsked), " ")
	number, kind, ok := strings.Cut(asked, " ")
	if !ok {
		t.Skip("only if TestWatchers asks for it")
	}
	var rejected atomic.Int64
	var all sync.WaitGroup
	for range must(strconv.Atoi(number)) {
		all.Go(func() {
			err := watchOne(address, kind)
			for ; err == errRejected; err = watchOne(address, kind) {
				rejected.Add(1)
				<-time.After(time.Second) // as its answer says
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	fmt.Fprintf(os.Stdout, "REJECTED %d\n", rejected.Load())
}

var errRejected = errors.New("rejected")

// watchOne is one watcher, until the server ends it.
func watchOne(address, kind string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	upgrade, want := "", http.StatusOK
	if kind == "websocket" {
		upgrade, want = "Connection: Upgrade\r\nUpgrade: websocket\r\n", http.StatusSwitchingProtocols
	}
	fmt.Fprintf(conn, "GET /watch HTTP/1.1\r\nHost: test\r\n%s\r\n", upgrade)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		return errRejected
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return nil
}

// quick makes one call after the other until the end, and returns how long each took.
func quick[T any](t *testing.T, url string, end <-chan T, rejected *atomic.Int64) (took []time.Duration) {
	t.Helper()
	for {
		begin := time.Now()
		answer, err := http.Get(url)
		if err != nil {
			t.Error(err)
			return took
		}
		answer.Body.Close()
		took = append(took, time.Since(begin))
		if answer.StatusCode != http.StatusNoContent {
			rejected.Add(1)
		}
		select {
		case <-end:
			return took
		default:
		}
	}
}
