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

// A process is a Redis server with a directory and a socket of its own.
type process struct {
	path, dir string
	cmd       *exec.Cmd
}

// newProcess starts a server, or skips the test where none is installed. Debian's redis-tools
// has the server, too: it is the same program under another name.
func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{dir: t.TempDir()}
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

// TestRestart kills the server while callers write, and starts it again. No write that was
// acknowledged is lost, none is made twice, and callers write again soon.
func TestRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := newProcess(t)
	client, err := NewClient(&redis.Options{Network: "unix", Addr: p.socket()}, egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var next, up, back atomic.Int64
	var acked sync.Map
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for ctx.Err() == nil {
				id, begun := next.Add(1), time.Now().UnixNano()
				if err := client.Incr(ctx, fmt.Sprint(id)).Err(); err != nil {
					<-time.After(5 * time.Millisecond)
					continue
				}
				acked.Store(id, true)
				if at := up.Load(); at != 0 && begun > at {
					back.CompareAndSwap(0, time.Now().UnixNano())
				}
			}
		})
	}
	<-time.After(200 * time.Millisecond)
	p.kill()
	<-time.After(500 * time.Millisecond)
	p.run(t)
	up.Store(time.Now().UnixNano())
	for n := 0; back.Load() == 0 && n < 1000; n++ { // 10 s
		<-time.After(10 * time.Millisecond)
	}
	cancel()
	all.Wait()
	if back.Load() == 0 {
		t.Fatal("no write within 10 s of the restart")
	}
	t.Logf("%d writes; the first one %v after the restart", next.Load(), time.Duration(back.Load()-up.Load()))
	plain := redis.NewClient(&redis.Options{Network: "unix", Addr: p.socket()})
	defer plain.Close()
	for id := range next.Load() {
		n, err := plain.Get(t.Context(), fmt.Sprint(id+1)).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if _, ok := acked.Load(id + 1); ok && n == 0 {
			t.Errorf("write %d was acknowledged and is lost", id+1)
		}
		if n > 1 {
			t.Errorf("write %d was made %d times", id+1, n)
		}
	}
}
