package httpproxy

import (
	"errors"
	"log/slog"
	"net/http"
	"reflect"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

// Connect connects to a control plane, in the background: one that is away is no
// error.
type Connect func(x *config.XDS, logger *slog.Logger) (ControlPlane, error)

// A ControlPlane sets limits of clusters while the proxy runs.
type ControlPlane interface {
	// Limits returns those of a cluster. From then on they follow what the control
	// plane says.
	Limits(x config.ClusterXDS) (Limits, error)
	// Close ends it. It returns an error if something was not reported.
	Close() error
}

// Limits are those of a cluster that a control plane sets.
type Limits interface {
	// Limiter is what bounds requests in flight.
	Limiter() *inflight.Limiter
	// Egress returns c with the limits in it.
	Egress(c egress.Config) egress.Config
	// RoundTripper counts what goes to base, for the control plane.
	RoundTripper(base http.RoundTripper) http.RoundTripper
	// Close gives them up. What is under way may go on.
	Close()
}

// errNoPlane is returned where a configuration names a control plane, and the program
// has no way to connect to one.
var errNoPlane = errors.New("xds: there is no way to connect to a control plane")

// makePlane connects to the control plane, unless it is the one that there is.
func (p *Proxy) makePlane(n *next) (err error) {
	x := n.config.XDS
	switch {
	case x == nil:
		return nil
	case p.plane != nil && reflect.DeepEqual(p.config.XDS, x):
		n.plane = p.plane
		return nil
	case p.connect == nil:
		return errNoPlane
	}
	plane, err := p.connect(x, p.logger)
	if err != nil {
		return err
	}
	n.plane = plane
	n.made = append(n.made, func() { p.leave(plane) })
	return nil
}

// leave ends a control plane, if there is one.
func (p *Proxy) leave(plane ControlPlane) {
	if plane == nil {
		return
	}
	if err := plane.Close(); err != nil {
		p.logger.Warn("leaving the control plane", "error", err)
	}
}
