package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// startTimeout is how long a backend may take to say hello.
const startTimeout = 20 * time.Second

// A process is a backend in a child process.
type process struct {
	addr   string
	wire   wire
	rounds int
	roots  *x509.CertPool
	cmd    *exec.Cmd
	stdin  io.WriteCloser // the backend ends when this does
	stderr head
	gone   chan struct{} // closed when the child has ended
}

// launch starts the child by calling start once.
type launch func(cmd *exec.Cmd, start func() error) error

// start starts this very program as a backend, by way of l unless that is nil, and waits
// for its hello. The caller calls stop.
func (b *backendCommand) start(ctx context.Context, cpus *machine.Affinity, l launch) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w, _ := wireNamed(b.Wire)
	p := &process{wire: w, gone: make(chan struct{})}
	p.cmd = exec.Command(exe, b.args()...)
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := func() error { return cpus.Start(p.cmd) }
	if l == nil {
		err = begin()
	} else {
		err = l(p.cmd, begin)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	return p, p.hear(ctx, out)
}

// hear waits for the hello of the child, and stops the child if none comes.
func (p *process) hear(ctx context.Context, out io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unwatch := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() }) // which ends the pipe
	var h hello
	err := json.NewDecoder(out).Decode(&h)
	unwatch()
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.gone)
	}()
	if err == nil {
		p.addr, p.rounds = h.Addr, h.Rounds
		p.roots, err = rootsOf(h.Certificate)
	}
	if err == nil {
		return nil
	}
	p.stop()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("the backend did not start: %w: %s", err, p.stderr.text())
}

// stop ends the child and waits until it has ended. It may be called again.
func (p *process) stop() {
	_ = p.stdin.Close()      // it may have ended
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.gone
}

// watch returns a copy of ctx that is canceled when the child ends early.
func (p *process) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.gone:
			cancel(errors.New("the backend ended early: " + p.stderr.text()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// used is the processor time of the child.
func (p *process) used() time.Duration { return machine.ProcessorTime(p.cmd.Process.Pid) }

// head is a writer that keeps the first bytes and forgets the rest.
type head struct{ buf bytes.Buffer }

const headSize = 4096

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.buf.Write(p[:min(len(p), headSize-h.buf.Len())])
	return len(p), nil
}

// text is for when the child has ended.
func (h *head) text() string {
	if h.buf.Len() == 0 {
		return "it wrote no error"
	}
	return string(bytes.TrimSpace(h.buf.Bytes()))
}
