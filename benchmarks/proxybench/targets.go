package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// A target is a proxy that runs, or the upstream itself.
type target struct {
	name    string
	address string
	cmd     *exec.Cmd // nil: there is no process
	scratch string
}

// A proxyProgram is how a proxy is started. Its configuration gets the address where it
// is to listen and that of the upstream.
type proxyProgram struct {
	name, file string
	config     func(p protocol, listen, upstream string) string
	args       func(file string) []string
}

func (c *cli) programs() []proxyProgram {
	spillway := func(mode string) proxyProgram {
		return proxyProgram{c.Spillway, "spillway.yaml", func(_ protocol, listen, upstream string) string {
			return fmt.Sprintf("mode: %s\nlisteners: [{address: %q}]\nclusters: [{name: bench, endpoints: [%q]}]\n", mode, listen, upstream)
		}, func(file string) []string { return []string{"proxy", "--config=" + file} }}
	}
	return []proxyProgram{
		{"haproxy", "haproxy.cfg", haproxy, func(file string) []string { return []string{"-db", "-q", "-f", file} }},
		{"caddy", "Caddyfile", caddy, func(file string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} }},
		spillway("observe"),
		spillway("enforce"),
	}
}

var names = []string{"none", "haproxy", "caddy", "spillway-observe", "spillway-enforce"}

func haproxy(p protocol, listen, upstream string) string {
	proto := ""
	if p.http2 {
		proto = " proto h2"
	}
	return fmt.Sprintf(`global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend in
    bind %s%s
    default_backend out
backend out
    server one %s%s
`, listen, proto, upstream, proto)
}

func caddy(p protocol, listen, upstream string) string {
	scheme, protocols := "", "h1"
	if p.http2 {
		scheme, protocols = "h2c://", "h1 h2c"
	}
	_, port, _ := net.SplitHostPort(listen)
	return fmt.Sprintf(`{
    admin off
    auto_https off
    servers {
        protocols %s
    }
}
http://:%s {
    bind 127.0.0.1
    reverse_proxy %s%s
}
`, protocols, port, scheme, upstream)
}

// start starts all proxies in front of an upstream, on their processor.
func (c *cli) start(ctx context.Context, p protocol, cpus *machine.Affinity, upstream string) ([]*target, error) {
	var all []*target
	if c.wants(names[0]) {
		all = append(all, &target{name: names[0], address: upstream})
	}
	for i, x := range c.programs() {
		if !c.wants(names[i+1]) {
			continue
		}
		t, err := x.start(ctx, names[i+1], p, cpus, upstream)
		if t != nil {
			all = append(all, t)
		}
		if err != nil {
			return all, fmt.Errorf("starting %s: %w", names[i+1], err)
		}
	}
	return all, nil
}

func (c *cli) wants(name string) bool { return len(c.Only) == 0 || slices.Contains(c.Only, name) }

func (x *proxyProgram) start(ctx context.Context, name string, p protocol, cpus *machine.Affinity, upstream string) (*target, error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	t := &target{name: name, address: listen}
	if t.scratch, err = os.MkdirTemp("", "proxybench-"); err != nil {
		return nil, err
	}
	file := filepath.Join(t.scratch, x.file)
	if err := os.WriteFile(file, []byte(x.config(p, listen, upstream)), 0o600); err != nil {
		return t, err
	}
	t.cmd = exec.Command(x.name, x.args(file)...)
	t.cmd.Env = append(os.Environ(), "HOME="+t.scratch)
	if err := cpus.Start(t.cmd); err != nil {
		t.cmd = nil
		return t, err
	}
	return t, t.ready(ctx)
}

// ready waits until the proxy can be connected to.
func (t *target) ready(ctx context.Context) error {
	var err error
	for end := time.Now().Add(10 * time.Second); ctx.Err() == nil && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		var c net.Conn
		if c, err = new(net.Dialer).DialContext(ctx, "tcp", t.address); err == nil {
			return c.Close()
		}
	}
	return err
}

// freeAddress returns an address that is free right now.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

func stopAll(all []*target) {
	for _, t := range all {
		if t.cmd != nil {
			_ = t.cmd.Process.Kill() // it may have ended
			var exit *exec.ExitError
			if err := t.cmd.Wait(); err != nil && !errors.As(err, &exit) {
				fmt.Fprintf(os.Stderr, "proxybench: %s: %v\n", t.name, err)
			}
		}
		if t.scratch != "" {
			_ = os.RemoveAll(t.scratch) // what is left is left to the system
		}
	}
}

// spent returns the processor time that a proxy has taken.
func (t *target) spent() time.Duration {
	if t.cmd == nil {
		return 0
	}
	return machine.ProcessorTime(t.cmd.Process.Pid)
}
