package spillredis

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
)

// A process is a Redis server with another directory and socket than any other.
type process struct {
	path, dir string
	options   []string
	cmd       *exec.Cmd
}

// newProcess starts a server, or skips the test where none is installed. Debian's redis-tools
// has the server, too: it is the same program under another name.
func newProcess(t *testing.T, options ...string) *process {
	t.Helper()
	p := &process{dir: t.TempDir(), options: options}
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			p.path = path
			break
		}
	}
	if p.path == "" {
		t.Skip("no Redis server is installed: Debian has it in the package redis-tools")
	}
	p.run(t)
	t.Cleanup(p.kill)
	return p
}

func (p *process) socket() string { return filepath.Join(p.dir, "s") }

func (p *process) run(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.path, "--port", "0", "--unixsocket", p.socket(), "--dir", p.dir, "--appendonly", "yes", "--save", "")
	p.cmd.Args = append(p.cmd.Args, p.options...)
	p.cmd.Args[0] = "redis-server"
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	probe := redis.NewClient(&redis.Options{Network: "unix", Addr: p.socket(), MaxRetries: -1, DialerRetries: 1})
	defer probe.Close()
	for range 1000 { // 10 s
		if probe.Ping(t.Context()).Err() == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("the Redis server does not answer")
}

// kill ends the server as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// A writer increments keys that no other writer has, and keeps which were acknowledged.
type writer struct {
	client *redis.Client
	prefix string

	next, up, back atomic.Int64
	acked          sync.Map
	count          atomic.Int64
	before         int64 // of count, at the kill
}

// restored returns how many writes were acknowledged since the kill.
func (w *writer) restored() int64 { return w.count.Load() - w.before }

func (w *writer) run(ctx context.Context, callers int) {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				w.write(ctx)
			}
		})
	}
	all.Wait()
}

func (w *writer) key(id int64) string { return fmt.Sprint(w.prefix, id) }

func (w *writer) write(ctx context.Context) {
	id, begun := w.next.Add(1), time.Now().UnixNano()
	if err := w.client.Incr(ctx, w.key(id)).Err(); err != nil {
		<-time.After(5 * time.Millisecond)
		return
	}
	w.acked.Store(id, true)
	w.count.Add(1)
	if at := w.up.Load(); at != 0 && begun > at {
		w.back.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// TestRestart kills the server while callers write, and starts it again, at the same time with
// the policies and without. No acknowledged write is lost, none is made twice, and callers
// write again within a second. From the kill on, callers with the policies write no less than
// the others.
func TestRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := newProcess(t)
	own, err := NewClient(&redis.Options{Network: "unix", Addr: p.socket()}, egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	// Without its retries, with which go-redis makes writes twice.
	plain := redis.NewClient(&redis.Options{Network: "unix", Addr: p.socket(), MaxRetries: -1})
	defer plain.Close()
	writers := []*writer{{client: own, prefix: "with "}, {client: plain, prefix: "without "}}
	up := restart(t, p, writers)
	for _, w := range writers {
		if w.back.Load() == 0 {
			t.Fatalf("%s: no write within 10 s of the restart", w.prefix)
		}
		t.Logf("%s: %d of %d writes acknowledged; the first one %v after the restart",
			w.prefix, w.count.Load(), w.next.Load(), time.Duration(w.back.Load()-up.UnixNano()))
		check(t, plain, w)
	}
	if late := time.Duration(writers[0].back.Load() - writers[1].back.Load()); late > time.Second {
		t.Errorf("the first write is %v later than without the policies", late)
	}
	with, without := writers[0].restored(), writers[1].restored()
	t.Logf("since the kill: %d writes, and %d without the policies", with, without)
	if with*10 < without*8 { // on a quiet machine they differ by some percent in both directions
		t.Errorf("since the kill %d writes were served, and %d without the policies", with, without)
	}
}

// restart kills the server under the load of writers, and starts it again. It returns when
// the server answered again.
func restart(t *testing.T, p *process, writers []*writer) (up time.Time) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() { w.run(ctx, 10) })
	}
	<-time.After(200 * time.Millisecond)
	for _, w := range writers {
		w.before = w.count.Load()
	}
	p.kill()
	<-time.After(500 * time.Millisecond)
	p.run(t)
	up = time.Now()
	for _, w := range writers {
		w.up.Store(up.UnixNano())
	}
	for _, w := range writers {
		for n := 0; w.back.Load() == 0 && n < 1000; n++ { // 10 s
			<-time.After(10 * time.Millisecond)
		}
	}
	<-time.After(time.Second)
	cancel()
	all.Wait()
	return up
}

// check compares the server with what was acknowledged.
func check(t *testing.T, plain *redis.Client, w *writer) {
	t.Helper()
	for id := range w.next.Load() {
		n, err := plain.Get(t.Context(), w.key(id+1)).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if _, ok := w.acked.Load(id + 1); ok && n == 0 {
			t.Errorf("write %s was acknowledged and is lost", w.key(id+1))
		}
		if n > 1 {
			t.Errorf("write %s was made %d times", w.key(id+1), n)
		}
	}
}
