package upstream

import (
	"net/http"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/egress"
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
	// Egress returns c with the limits set, those of requests in flight as its Inflight.
	Egress(c egress.Config) egress.Config
	// RoundTripper wraps base and counts requests for the reports to the control plane.
	RoundTripper(base http.RoundTripper) http.RoundTripper
	// Close releases the limits. In-flight requests may go on.
	Close()
}
