package quotas

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/internal/freeport"
)

// serve starts a Redis or Valkey on a port of loopback, which ends with the test, and returns its
// address.
func serve(t *testing.T, more ...string) string {
	t.Helper()
	path := ""
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} { // Debian's redis-tools has it as the last
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no redis-server, valkey-server or redis-check-rdb in PATH (Debian: apt-get install redis-tools)")
	}
	for range 5 { // another process may get the port first
		addr := freeport.Address(t)
		_, port, _ := net.SplitHostPort(addr)
		cmd := &exec.Cmd{Path: path, Args: append([]string{
			"redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", t.TempDir(), "--loglevel", "warning",
		}, more...)}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-ended
		})
		if answers(addr, ended) {
			return addr
		}
	}
	t.Fatal("no server starts")
	return ""
}

// answers waits until a server answers, and returns false if it ends before.
func answers(addr string, ended <-chan struct{}) bool {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close()
	deadline := time.After(20 * time.Second)
	for {
		if err := c.Ping(context.Background()).Err(); err == nil || redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "NOPERM") {
			return true
		}
		select {
		case <-ended:
			return false
		case <-deadline:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}
