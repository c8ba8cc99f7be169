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

// A UsageError is a flag of the command line that cannot be used, and why.
type UsageError struct {
	Flag    string // without the dashes
	Problem string
}

func (e *UsageError) Error() string { return "--" + e.Flag + " " + e.Problem }

// BackendCommand is the first argument that starts this program as a [Backend]; its settings are the second.
const BackendCommand = "backend"

// startTimeout is the longest wait until a child is ready.
const startTimeout = 10 * time.Second

// A Process is a Backend in a child process, or a proxy in front of one.
type Process struct {
	name    string // what it is
	URL     string
	Page    string // URL of the page for operators of a protected Backend; empty: there is none
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
	settings, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	p, err := newProcess("backend", BackendCommand, string(settings))
	if err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = cpus.start(p.cmd.Start)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	var h hello
	if err := p.hear(ctx, out, &h); err != nil {
		return nil, fmt.Errorf("the backend did not start: %w", err)
	}
	if h.Error != "" {
		p.Stop()
		return nil, &UsageError{"port", fmt.Sprintf("is %d, which cannot be used: %s", b.Port, h.Error)}
	}
	p.URL, p.Page, p.Rounds, p.Sheds = "http://"+h.Addr+"/", h.Page, h.Rounds, b.Protect
	return p, nil
}

// newProcess returns this very program, as a child that can be started.
func newProcess(name string, args ...string) (*Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{name: name, cmd: exec.Command(exe, args...), stderr: &head{room: 4096}, gone: make(chan struct{})}
	p.cmd.Stderr = p.stderr
	p.stdin, err = p.cmd.StdinPipe()
	return p, err
}

// signalGrace is the longest time until a parent receives a signal to its group.
const signalGrace = 500 * time.Millisecond

// hear waits for the message with which the child reports that it is ready. If none comes, the child is stopped.
func (p *Process) hear(ctx context.Context, r io.Reader, message any) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Killing the child ends its side of the pipe, and with that the read below.
	unwatch := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	err := json.NewDecoder(r).Decode(message)
	unwatch()
	go func() { // not before the pipe was read
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.gone)
	}()
	if err == nil {
		return nil
	}
	p.Stop()
	if p.cmd.ProcessState.ExitCode() < 0 { // by a signal, which the parent may also receive, but later
		select {
		case <-ctx.Done():
		case <-time.After(signalGrace):
		}
	}
	return errors.Join(context.Cause(ctx), err, p.stderr.err())
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
	go func() {
		select {
		case <-p.gone:
			cancel(fmt.Errorf("the %s ended in the middle of the drill: %v: %w", p.name, p.cmd.ProcessState, p.stderr.err()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
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
