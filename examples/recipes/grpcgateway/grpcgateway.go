// Package grpcgateway protects a grpc-gateway, which serves a gRPC service to clients of HTTP and JSON.
package grpcgateway

import (
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/seed90641741/spillway/spillhttp"
)

// Protect returns the option for [runtime.NewServeMux] that puts the server policies in front of all handlers. Each route has a
// separate limit. Use a gRPC client with the client policies for the calls to the service.
func Protect(c spillhttp.HandlerConfig) (runtime.ServeMuxOption, error) {
	c.Route = func(r *http.Request) string {
		pattern, _ := runtime.HTTPPattern(r.Context())
		return pattern.String()
	}
	protect, err := spillhttp.Middleware(c)
	if err != nil {
		return nil, err
	}
	return runtime.WithMiddlewares(func(next runtime.HandlerFunc) runtime.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
			protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next(w, r, params) })).ServeHTTP(w, r)
		}
	}), nil
}
