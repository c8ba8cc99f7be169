package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// A PortError says why the backend cannot listen on the requested port.
type PortError struct {
	Port    int
	Problem string
}

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d cannot be used: %s", e.Port, e.Problem)
}

// BackendCommand is the first argument that starts this program as a [Backend].
const BackendCommand = "backend"

// startTimeout is the longest wait for the hello of a backend.
const startTimeout = 10 * time.Second

// A Process is a Backend in a child process, or a proxy in front of one.
type Process struct {
	name    string // what it is
	URL     string
	Rounds  int
	Sheds   bool // it may reject
	cmd     *exec.Cmd
	stdin   io.WriteCloser // a Backend ends when this does
	stderr  *head
	gone    chan struct{} // closed when the child has ended
	scratch string        // directory to remove after it; empty: none
}

// StartBackend starts this very program as a Backend and waits for its hello.
// The caller must call Stop.
func StartBackend(ctx context.Context, cpus *CPUs, b Backend) (*Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program to start the backend from: %w", err)
	}
	p := &Process{name: "backend", Sheds: b.Protect, stderr: &head{room: 4096}, gone: make(chan struct{})}
	args := []string{
		BackendCommand, fmt.Sprintf("--port=%d", b.Port), "--kind=" + b.Kind,
		fmt.Sprintf("--protect=%t", b.Protect), fmt.Sprintf("--service=%v", b.Service), fmt.Sprintf("--rounds=%d", b.Rounds),
	}
	if b.Quota > 0 {
		args = append(args, fmt.Sprintf("--quota=%v", b.Quota), fmt.Sprintf("--learn=%t", b.Learn))
	}
	if b.Degrade {
		args = append(args, "--degrade")
	}
	p.cmd = exec.Command(exe, args...)
	p.cmd.Stderr = p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	hello, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	if err := cpus.start(p.cmd.Start); err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	if err := p.hear(ctx, hello, b.Port); err != nil {
		return nil, err
	}
	return p, nil
}

// signalGrace is the longest time until a parent receives a signal to its group.
const signalGrace = 500 * time.Millisecond

// hear waits for the child's hello. If none comes, the child is stopped.
func (p *Process) hear(ctx context.Context, r io.Reader, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Killing the child ends its side of the pipe, and with that the read below.
	unwatch := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	var h hello
	err := json.NewDecoder(r).Decode(&h)
	unwatch()
	go func() {
		_ = p.cmd.Wait() // not before the pipe was read
		close(p.gone)
	}()
	if err == nil && h.Error == "" {
		p.URL, p.Rounds = "http://"+h.Addr+"/", h.Rounds
		return nil
	}
	p.Stop()
	if h.Error != "" {
		return &PortError{port, h.Error}
	}
	if p.cmd.ProcessState.ExitCode() < 0 { // by a signal, which the parent may also receive, but later
		select {
		case <-ctx.Done():
		case <-time.After(signalGrace):
		}
	}
	return fmt.Errorf("the backend did not start: %w", errors.Join(context.Cause(ctx), err, p.stderr.err()))
}

// Outage stops all calls of the backend for d.
func (p *Process) Outage(d time.Duration) error {
	_, err := fmt.Fprintln(p.stdin, d)
	return err
}

// Stop ends the child and waits until it is gone. It may be called again.
func (p *Process) Stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Kill()
	<-p.gone
	if p.scratch != "" {
		_ = os.RemoveAll(p.scratch) // what is left is left to the system
	}
}

// Watch returns a copy of ctx that is cancelled when the child ends early.
func (p *Process) Watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.gone:
			cancel(fmt.Errorf("the %s ended in the middle of the drill: %v: %w", p.name, p.cmd.ProcessState, p.stderr.err()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// head is a writer that keeps the first bytes and discards the rest.
type head struct {
	buf  bytes.Buffer
	room int
}

func (h *head) Write(p []byte) (int, error) {
	h.buf.Write(p[:min(len(p), h.room-h.buf.Len())])
	return len(p), nil
}

// err returns what was written as an error. Call it after the child has ended.
func (h *head) err() error {
	if h.buf.Len() == 0 {
		return errors.New("it said nothing")
	}
	return fmt.Errorf("it said: %s", bytes.TrimSpace(h.buf.Bytes()))
}
