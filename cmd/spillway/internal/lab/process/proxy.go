package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ProxyCommand is the first argument by which this program is asked to be a proxy.
const ProxyCommand = "proxy"

// proxyConfig is the configuration of the proxy: the defaults, and mode enforce. Its
// listener is internal, as a protected server is, so that it believes the labels.
const proxyConfig = `mode: enforce
admin: {address: "off"}
listeners:
  - name: drill
    address: 127.0.0.1:0
    boundary: internal
    peers: [127.0.0.0/8]
    others: CRITICAL_PLUS
clusters:
  - name: backend
    endpoints: [%q]
`

// proxyRejects makes the proxy reject all requests but one a day.
const proxyRejects = "    rate_limit: {rate: 0.0000116}\n"

// proxyListener is the name of its listener.
const proxyListener = "drill"

// StartProxy starts this very program as a proxy in front of a backend. It may run
// where this process may: what it needs is taken from the callers, not from the
// backend, whose capacity was measured without it. The caller must call Stop.
// With reject it rejects all requests.
func StartProxy(ctx context.Context, backend *Process, reject bool) (*Process, error) {
	dir, err := os.MkdirTemp("", "spillway-drill-")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p, err := runProxy(ctx, dir, backend, reject)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the proxy: %w", err), os.RemoveAll(dir))
	}
	p.scratch = dir
	return p, nil
}

func runProxy(ctx context.Context, dir string, backend *Process, reject bool) (*Process, error) {
	file, upstream := filepath.Join(dir, "proxy.yaml"), strings.Trim(strings.TrimPrefix(backend.URL, "http:"), "/")
	config := fmt.Sprintf(proxyConfig, upstream)
	if reject {
		config += proxyRejects
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	said, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close()
	p, err := newProcess("proxy", ProxyCommand, "--config="+file, fmt.Sprintf("--ready-fd=%d", readyFD))
	if err == nil {
		p.Sheds, p.cmd.ExtraFiles, p.cmd.SysProcAttr = true, []*os.File{say}, endsWithParent()
		err = p.cmd.Start()
	}
	_ = say.Close() // the child has its own
	if err != nil {
		return nil, err
	}
	var message Ready
	if err := p.hear(ctx, said, &message); err != nil {
		return nil, err
	}
	p.URL = "http://" + message.Listeners[proxyListener] + "/"
	return p, nil
}

// readyFD is the first of ExtraFiles in the child.
const readyFD = 3
