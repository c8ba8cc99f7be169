package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A guard allows connections to the addresses of one target only.
type guard struct {
	url     *url.URL
	allowed []netip.AddrPort
}

type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// resolve looks up the host of the target, once for the whole run, and checks that the user
// may send load to all of its addresses. A name with one address elsewhere is rejected.
func (c *Service) resolve(ctx context.Context, find lookup) (*guard, error) {
	u, err := url.Parse(c.Target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, wrongf("target", "is %.200q, must be a URL such as http://127.0.0.1:8080/path, without a user", c.Target)
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]), 10, 16)
	if err != nil || port == 0 {
		return nil, wrongf("target", "has port %.20q, must be 1 to 65535", u.Port())
	}
	addresses, err := find(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, fmt.Errorf("resolving the target: %w", err)
	}
	g := &guard{url: u}
	for _, a := range addresses {
		if a = a.Unmap(); !a.IsLoopback() && !c.IOwnThisTarget {
			return nil, wrongf("target", "is %.200q, which is at %v; only loopback addresses are allowed without --i-own-this-target", c.Target, a)
		}
		g.allowed = append(g.allowed, netip.AddrPortFrom(a, uint16(port)))
	}
	if len(g.allowed) == 0 {
		return nil, wrongf("target", "is %.200q, which has no address", c.Target)
	}
	return g, nil
}

var errElsewhere = errors.New("not an address of the target")

// control refuses connections to all other addresses, whatever a name resolves to by now.
func (g *guard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !slices.Contains(g.allowed, netip.AddrPortFrom(to.Addr().Unmap(), to.Port())) {
		return fmt.Errorf("%s: %w", address, errElsewhere)
	}
	return nil
}

// connectTimeout is enough for any target nearby; the timeout of a request is shorter mostly.
const connectTimeout = 10 * time.Second

// dial connects to the addresses that were found, one after the other.
func (g *guard) dial(ctx context.Context, network, _ string) (conn net.Conn, err error) {
	d := net.Dialer{Timeout: connectTimeout, Control: g.control}
	for _, to := range g.allowed {
		if conn, err = d.DialContext(ctx, network, to.String()); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// maxHeader is the most bytes of header fields that an answer may have.
const maxHeader = 64 << 10

func (g *guard) transport(workers int) *http.Transport {
	return &http.Transport{ // without a proxy, whatever the environment says
		DialContext: g.dial, MaxConnsPerHost: workers, MaxIdleConnsPerHost: workers,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, // short answers must not become long ones
	}
}
