package upstream

import (
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

// A ControlPlane sets limits of clusters while the proxy runs.
type ControlPlane interface {
	// Limits returns the limits of a cluster. From then on they follow what the control
	// plane says.
	Limits(x config.ClusterXDS) (Limits, error)
	// Close closes the connection. It returns an error if reports could not be sent.
	Close() error
}

// Limits are the limits of a cluster that a control plane sets.
type Limits interface {
	// Limiter is the limiter of requests in flight.
	Limiter() *inflight.Limiter
	// Egress returns c with the limits set.
	Egress(c egress.Config) egress.Config
	// RoundTripper wraps base and counts requests for the reports to the control plane.
	RoundTripper(base http.RoundTripper) http.RoundTripper
	// Close releases the limits. In-flight requests may go on.
	Close()
}
