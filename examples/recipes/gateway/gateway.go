// Package gateway passes requests on to several services: it protects itself, and each
// service from the others' requests.
package gateway

import (
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/seed90641741/spillway/spillhttp"
)

// New returns a gateway. Each key of backends is the pattern of a route, and its value is the
// service that serves it. Each service has its own throttle and in-flight limit.
func New(c spillhttp.HandlerConfig, backends map[string]*url.URL) (http.Handler, error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, target := range backends {
		mux.Handle(pattern, &httputil.ReverseProxy{
			Transport:    transport,
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ErrorHandler: unavailable,
		})
	}
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	c.HealthPaths = []string{"/healthz"}
	return spillhttp.NewHandler(mux, c)
}

// unavailable answers a request whose service did not answer. If a policy rejected it here, the
// Handler adds that a retry is of no help.
func unavailable(w http.ResponseWriter, _ *http.Request, _ error) {
	w.WriteHeader(http.StatusServiceUnavailable)
}
