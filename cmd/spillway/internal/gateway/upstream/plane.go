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
	// Close ends it. It returns an error if something was not reported.
	Close() error
}

// Limits are the limits of a cluster that a control plane sets.
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
