package docs

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/spillconnect"
)

// name answers with the name of a user.
type name = func(context.Context, *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error)

const procedure = "/users.v1.Users/Name"

func connected(mux *http.ServeMux, url string, name name) (*connect.Client[wrapperspb.StringValue, wrapperspb.StringValue], error) {
	server, err := spillconnect.NewServer(spillconnect.ServerConfig{})
	if err != nil {
		return nil, err
	}
	mux.Handle(procedure, connect.NewUnaryHandler(procedure, name, connect.WithInterceptors(server))) // or a generated handler

	client, err := spillconnect.NewClient(spillconnect.ClientConfig{})
	if err != nil {
		return nil, err
	}
	// Or a generated client:
	return connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](
		http.DefaultClient, url+procedure, connect.WithInterceptors(client)), nil
}
