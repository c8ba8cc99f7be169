package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/quotas"
)

// Files returns an error for each certificate, key, CA or token file of a configuration that
// cannot be used.
func Files(c *config.Config) (errs []error) {
	note := func(part, name string, err error) {
		if err != nil {
			errs = append(errs, wrap(part, name, err))
		}
	}
	for _, l := range c.Defaulted().Listeners {
		_, err := keys.Server(l.TLS)
		note("listener", l.Name, err)
	}
	for _, x := range c.Clusters {
		_, err := keys.Client(x.TLS)
		note("cluster", x.Name, err)
	}
	for _, m := range c.Defaulted().Mongo {
		_, err := keys.Server(m.TLS)
		note("mongo", m.Name, err)
		_, err = keys.Client(m.UpstreamTLS)
		note("mongo", m.Name, err)
	}
	if x := c.XDS; x != nil {
		_, err := keys.Client(x.TLS)
		note("xds", x.Address, err)
	}
	return append(append(errs, keys.Admin(&c.Admin)...), quotas.Files(c)...)
}

// Bind returns an error for each address that cannot be listened on, for example because a
// running proxy uses it.
func Bind(ctx context.Context, c *config.Config) (errs []error) {
	try := func(part, name, address string) { errs = append(errs, BindAddress(ctx, part, name, address)...) }
	d := c.Defaulted()
	for _, l := range d.Listeners {
		try("listener", l.Name, l.Address)
	}
	for _, m := range d.Mongo {
		try("mongo", m.Name, m.Address)
	}
	if a := c.Admin.Address; a != "" && a != "off" && !strings.HasPrefix(a, "unix:") {
		try("admin", "address", a)
	}
	return errs
}

// BindAddress returns an error, of a part of a configuration, if an address cannot be listened on.
func BindAddress(ctx context.Context, part, name, address string) []error {
	s, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return []error{wrap(part, name, err)}
	}
	return nil
}

// Reach returns an error for each endpoint that cannot be connected to, or whose TLS
// certificate is not valid. Endpoints of a cluster are tried concurrently.
func Reach(ctx context.Context, c *config.Config) (errs []error) {
	d := c.Defaulted()
	for _, x := range d.Clusters {
		errs = append(errs, reachAll(ctx, "cluster "+x.Name, x.TLS, x.Endpoints, x.ConnectTimeout)...)
	}
	for _, m := range d.Mongo {
		errs = append(errs, reachAll(ctx, "mongo "+m.Name, m.UpstreamTLS, m.Endpoints, m.ConnectTimeout)...)
	}
	return errs
}

func reachAll(ctx context.Context, part string, t *config.ClientTLS, endpoints []string, timeout time.Duration) (errs []error) {
	s, err := keys.Client(t)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", part, err)}
	}
	found := make([]error, len(endpoints))
	var all sync.WaitGroup
	for i, address := range endpoints {
		all.Go(func() { found[i] = reach(ctx, timeout, s.Config, address) })
	}
	all.Wait()
	for i, err := range found {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: endpoint %s: %w", part, endpoints[i], err))
		}
	}
	return errs
}

func reach(ctx context.Context, timeout time.Duration, secured *tls.Config, address string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if secured != nil {
		dial = (&tls.Dialer{Config: secured}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
