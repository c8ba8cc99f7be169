package board

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/internal/freeport"
)

// A server is a Redis or Valkey that a test starts on a loopback port, with a separate
// directory, and kills.
type server struct {
	t    *testing.T
	args []string
	addr string
	cmd  *exec.Cmd
}

// binary finds the program. Debian's package redis-tools has it under the name of the
// checker of dumps: what it does depends on the name by which it is called.
func binary(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no redis-server, valkey-server or redis-check-rdb in PATH (Debian: apt-get install redis-tools)")
	return ""
}

// newServer starts a server, with more arguments than the usual ones.
func newServer(t *testing.T, more ...string) *server {
	t.Helper()
	path := binary(t)
	for try := range 5 { // another process may get the port first
		addr := freeport.Address(t)
		_, port, _ := net.SplitHostPort(addr)
		s := &server{t: t, addr: addr, args: append([]string{
			path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", t.TempDir(), "--daemonize", "no", "--loglevel", "warning",
		}, more...)}
		t.Cleanup(s.kill)
		err := s.start()
		if err == nil {
			return s
		}
		t.Logf("try %d: %v", try, err)
	}
	t.Fatal("no server starts")
	return nil
}

// start starts the server, empty, and waits until it answers.
func (s *server) start() error {
	s.cmd = &exec.Cmd{Path: s.args[0], Args: append([]string{"redis-server"}, s.args[1:]...)}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer c.Close()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if err := c.Ping(context.Background()).Err(); err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return nil
		}
		<-time.After(10 * time.Millisecond)
	}
	s.kill()
	return fmt.Errorf("the server at %s does not answer", s.addr)
}

// kill ends the server at once, as a crash does.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// client returns a client for boards.
func (s *server) client(o redis.UniversalOptions) redis.UniversalClient {
	o.Addrs = []string{s.addr}
	c := Connect(o)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}
