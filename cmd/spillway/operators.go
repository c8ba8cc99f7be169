package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/exporters"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/access"
)

// operators is the address for operators of a proxy or a service of quotas: a page, metrics, health.
type operators struct {
	logger  *slog.Logger
	server  *admin.Server // serves nobody without an address, and still logs incidents
	address string        // as it was asked for
	rules   config.Admin
	tls     atomic.Pointer[tls.Config] // nil: in the clear
}

// start opens the address, from a flag or the configuration. If the default address is not available, the
// program runs without it.
func (o *operators) start(flag, fallback string, c config.Admin, with *admin.Config) error {
	o.logger, o.rules = with.Logger, c
	socket, err := o.listen(flag, fallback)
	if err != nil {
		return err
	}
	with.Access, with.Version, with.Metrics = o.access(), version(), exporters.Handler
	o.server = admin.New(*with)
	if socket != nil {
		o.serve(socket)
	}
	return nil
}

// listen opens the address from the flag or the configuration. It returns nil if the
// address is off, or if the default address is not available.
func (o *operators) listen(flag, fallback string) (socket net.Listener, err error) {
	address := cmp.Or(flag, o.rules.Address)
	if address == "off" {
		return socket, nil
	}
	o.address = cmp.Or(address, fallback)
	if err := o.secure(o.rules.TLS); err != nil {
		return nil, fmt.Errorf("the address for operators: %w", err)
	}
	socket, err = o.open()
	switch {
	case err != nil && address != "":
		return nil, fmt.Errorf("the address for operators: %w", err)
	case err != nil:
		o.logger.Warn("there is no page for operators; --admin says where one can be", "error", err)
	}
	return socket, nil
}

// open opens the address: TCP, or a Unix socket that the same group can access.
func (o *operators) open() (net.Listener, error) {
	path, unix := strings.CutPrefix(o.address, "unix:")
	if !unix {
		socket, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.address)
		if err != nil || o.rules.TLS == nil {
			return socket, err
		}
		return tls.NewListener(socket, &tls.Config{
			MinVersion:         tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.tls.Load(), nil },
		}), nil
	}
	if left, err := os.Stat(path); err == nil && left.Mode()&os.ModeSocket != 0 {
		if c, err := new(net.Dialer).DialContext(context.Background(), "unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s is in use", path)
		}
		_ = os.Remove(path) // of a process that was killed
	}
	socket, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err == nil {
		err = os.Chmod(path, 0o660)
	}
	return socket, err
}

// secure reads the certificate of the address, if it has one.
func (o *operators) secure(c *config.ServerTLS) error {
	t, err := keys.Server(c, "h2", "http/1.1")
	if err == nil && t != nil {
		o.tls.Store(t)
	}
	return err
}

func (o *operators) serve(socket net.Listener) {
	go func() {
		if err := o.server.Serve(socket); err != nil {
			o.logger.Error("the address for operators has failed", "error", err)
		}
	}()
	scheme := "http://"
	switch {
	case socket.Addr().Network() == "unix":
		scheme = "unix:"
	case o.tls.Load() != nil:
		scheme = "https://"
	}
	o.logger.Info("for operators", "dashboard", scheme+socket.Addr().String()+"/")
}

// access returns the configured access rules. A host name in the address is an allowed host.
func (o *operators) access() access.Rules {
	hosts := o.rules.Hosts
	if host, _, err := net.SplitHostPort(o.address); err == nil {
		hosts = append(slices.Clone(hosts), host)
	}
	return access.Rules{
		Hosts: hosts, Read: access.File(o.rules.ReadToken), Change: access.File(o.rules.TokenFile),
		Words: access.Words{
			Hosts:    "admin.hosts in the configuration",
			NoRead:   "from other hosts this needs a token, and neither read_token_file nor token_file is configured",
			NoChange: "no token for changes is configured: set admin.token_file",
		},
	}
}

// update puts other rules in place, and reads the certificate again.
func (o *operators) update(c config.Admin) {
	if o.rules.Address != c.Address {
		o.logger.Warn("admin.address counts from the next start on")
	}
	if (o.rules.TLS == nil) != (c.TLS == nil) {
		o.logger.Warn("admin.tls counts from the next start on")
	}
	if err := o.secure(c.TLS); err != nil {
		o.logger.Warn("reload of the certificate for operators failed; keeping the previous one", "error", err)
	}
	o.rules = c
	o.server.Allow(o.access())
}

func (o *operators) close() {
	if err := o.server.Close(); err != nil {
		o.logger.Warn("closing the address for operators", "error", err)
	}
}
