package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// ProxyCommand is the first argument by which this program is asked to be a proxy.
const ProxyCommand = "proxy"

// frontConfig is what the proxy is told: the defaults, and mode enforce. Its
// listener is internal, as a protected server is, so that it believes the labels.
const frontConfig = `mode: enforce
admin: {address: "off"}
listeners:
  - address: 127.0.0.1:0
    boundary: internal
    peers: [127.0.0.0/8]
    others: CRITICAL_PLUS
clusters:
  - name: backend
    endpoints: [%q]
`

// startFront starts this very program as a proxy in front of a backend. It may run
// where this process may: what it needs is taken from the callers, not from the
// backend, whose capacity was measured without it. Whoever starts one calls stop.
func startFront(ctx context.Context, backend *process) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program to start the proxy from: %w", err)
	}
	dir, err := os.MkdirTemp("", "spillway-drill-")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p, err := runFront(ctx, exe, dir, backend)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the proxy: %w", err), os.RemoveAll(dir))
	}
	p.scratch = dir
	return p, nil
}

func runFront(ctx context.Context, exe, dir string, backend *process) (*process, error) {
	file, upstream := filepath.Join(dir, "proxy.yaml"), strings.Trim(strings.TrimPrefix(backend.url, "http:"), "/")
	if err := os.WriteFile(file, fmt.Appendf(nil, frontConfig, upstream), 0o600); err != nil {
		return nil, err
	}
	news := &announcements{address: make(chan string, 1)}
	p := &process{name: "proxy", wire: backend.wire, sheds: true, stderr: &news.head, gone: make(chan struct{})}
	news.head.room = 4096
	p.cmd = exec.Command(exe, ProxyCommand, "--config="+file, "--log=json")
	p.cmd.Stderr = news
	p.cmd.SysProcAttr = endsWithParent()
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.gone)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case address := <-news.address:
		p.url = "http://" + address + "/"
		return p, nil
	case <-p.gone:
		return nil, p.stderr.err()
	case <-ctx.Done():
		p.stop()
		return nil, errors.Join(context.Cause(ctx), p.stderr.err())
	}
}

// announcements reads the log of a proxy until it says where it listens. The first
// lines are kept.
type announcements struct {
	head    head
	line    []byte
	address chan string // receives one
	once    sync.Once
}

// Write implements [io.Writer].
func (a *announcements) Write(p []byte) (int, error) {
	_, _ = a.head.Write(p) // never fails
	for _, b := range p {
		if b != '\n' {
			if len(a.line) < a.head.room {
				a.line = append(a.line, b)
			}
			continue
		}
		var l struct {
			Msg     string `json:"msg"`
			Address string `json:"address"`
		}
		if json.Unmarshal(a.line, &l) == nil && l.Msg == "listening" {
			a.once.Do(func() { a.address <- l.Address })
		}
		a.line = a.line[:0]
	}
	return len(p), nil
}
