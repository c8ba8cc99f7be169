//go:build !xds

package xds

import (
	"errors"
	"log/slog"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/proxy"
)

var errLeftOut = errors.New("xds is given, but this program was built without it: build it with go build -tags xds")

// Check returns an error if c names a control plane.
func Check(c *config.Config) error {
	if c.XDS == nil {
		return nil
	}
	return errLeftOut
}

// A Connector connects to nothing.
type Connector struct{}

// Connect returns an error: it is a [proxy.Connect].
func (*Connector) Connect(*config.XDS, *slog.Logger) (proxy.ControlPlane, error) {
	return nil, errLeftOut
}
