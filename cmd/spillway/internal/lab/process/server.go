package process

import (
	"net"
	"net/http"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// serveProtected serves next from ln with Spillway in front of it, with defaults
// but for one thing: it is an internal server, so that it believes the labels.
func serveProtected(ln net.Listener, next http.Handler) error {
	server, err := ingress.New(ingress.Config{
		Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus},
	})
	if err != nil {
		return err
	}
	h, err := spillhttp.NewHandler(next, spillhttp.HandlerConfig{Ingress: server})
	if err != nil {
		return err
	}
	return h.Serve(newServer(h), ln)
}
