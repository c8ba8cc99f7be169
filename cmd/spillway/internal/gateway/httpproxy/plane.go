package httpproxy

import (
	"errors"
	"log/slog"
	"reflect"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
)

// Connect connects to a control plane in the background. An unreachable control plane is no
// error.
type Connect func(x *config.XDS, logger *slog.Logger) (upstream.ControlPlane, error)

// errNoPlane is returned if a configuration names a control plane and [Config].Connect is nil.
var errNoPlane = errors.New("xds: there is no way to connect to a control plane")

// makePlane connects to the control plane, unless it is connected already.
func (n *Change) makePlane() (err error) {
	p, x := n.proxy, n.config.XDS
	switch {
	case x == nil:
		return nil
	case p.plane != nil && reflect.DeepEqual(p.config.XDS, x):
		n.plane = p.plane
		return nil
	case p.connect == nil:
		return errNoPlane
	}
	if n.plane, err = p.connect(x, p.logger); err == nil {
		n.made = append(n.made, func() { p.leave(n.plane) })
	}
	return err
}

// leave ends a control plane, if there is one.
func (p *Proxy) leave(plane upstream.ControlPlane) {
	if plane == nil {
		return
	}
	if err := plane.Close(); err != nil {
		p.logger.Warn("leaving the control plane", "error", err)
	}
}
