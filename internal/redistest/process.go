// Package redistest starts Redis servers for tests of adapters, and kills them under load.
package redistest

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Process is a Redis server with another directory and socket than any other.
type Process struct {
	path, dir string
	options   []string
	cmd       *exec.Cmd
}

// Start starts a server that ends with the test, or skips the test where none is installed.
// Debian's redis-tools has the server, too: it is the same program under another name.
func Start(t *testing.T, options ...string) *Process {
	t.Helper()
	p := &Process{dir: t.TempDir(), options: options}
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			p.path = path
			break
		}
	}
	if p.path == "" {
		t.Skip("no Redis server is installed: Debian has it in the package redis-tools")
	}
	p.Run(t)
	t.Cleanup(p.Kill)
	return p
}

// Socket returns the path of the server's Unix socket.
func (p *Process) Socket() string { return filepath.Join(p.dir, "s") }

// Run starts the server again after Kill, and returns when it answers.
func (p *Process) Run(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.path, "--port", "0", "--unixsocket", p.Socket(), //nolint:gosec // a server that is installed
		"--dir", p.dir, "--appendonly", "yes", "--save", "",
		// The kernel keeps what a killed process wrote. By default the server answers before it
		// writes if the disk is busy with what it wrote a second ago.
		"--appendfsync", "no")
	p.cmd.Args = append(p.cmd.Args, p.options...)
	p.cmd.Args[0] = "redis-server"
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // 10 s
		if p.answers(t.Context()) {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("the Redis server does not answer")
}

// answers reports whether the server answers a PING.
func (p *Process) answers(ctx context.Context) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", p.Socket())
	if err != nil {
		return false
	}
	defer conn.Close()
	answer := make([]byte, 64)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, err := conn.Read(answer)
	return err == nil && strings.HasPrefix(string(answer[:n]), "+PONG")
}

// Kill ends the server as kill -9 does.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}
