// Package connect protects a service of connect-go and calls it.
package connect

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillconnect"
)

// Procedure is the only one of the service. Generated code has such constants.
const Procedure = "/users.v1.Users/Name"

// Name returns the name of a user.
type Name = func(context.Context, *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error)

// NewServer returns the service behind the server policies.
func NewServer(in *ingress.Server, name Name) (http.Handler, error) {
	server, err := spillconnect.NewServer(spillconnect.ServerConfig{Ingress: in})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Procedure, connect.NewUnaryHandler(Procedure, name, connect.WithInterceptors(server)))
	return mux, nil
}

// NewClient returns a client with the client policies.
func NewClient(http connect.HTTPClient, url string) (*connect.Client[wrapperspb.StringValue, wrapperspb.StringValue], error) {
	client, err := spillconnect.NewClient(spillconnect.ClientConfig{})
	if err != nil {
		return nil, err
	}
	return connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](http, url+Procedure,
		connect.WithInterceptors(client), connect.WithIdempotency(connect.IdempotencyNoSideEffects)), nil
}
