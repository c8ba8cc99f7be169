package recipes_test

import (
	"net/http"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/examples/recipes/grpcgateway"
	"github.com/seed90641741/spillway/spillhttp"
)

func TestGRPCGateway(t *testing.T) {
	gateway := recipe{"/users/{id=*}", serveGRPCGateway, promises{unseen: true}}
	gateway.check(t)
	t.Run("stream", func(t *testing.T) {
		gateway.checkStream(t, "/stream", "application/json", `{"result":"one"}`+"\n", `{"result":"two"}`+"\n")
	})
}

func serveGRPCGateway(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
	protect, err := grpcgateway.Protect(c)
	if err != nil {
		t.Fatal(err)
	}
	mux := runtime.NewServeMux(protect)
	handle := func(path string, f runtime.HandlerFunc) {
		if err := mux.HandlePath(http.MethodGet, path, f); err != nil {
			t.Fatal(err)
		}
	}
	handle("/users/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]string) { s.users(w, r) })
	handle("/healthz", func(http.ResponseWriter, *http.Request, map[string]string) {})
	handle("/stream", func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
		defer s.end()
		ctx := runtime.NewServerMetadataContext(r.Context(), runtime.ServerMetadata{}) // which generated code has of its gRPC client
		runtime.ForwardResponseStream(ctx, mux, &runtime.JSONPb{}, w, r, func() (proto.Message, error) {
			text, ok := s.next(r.Context())
			if !ok {
				return nil, r.Context().Err()
			}
			return wrapperspb.String(text), nil
		})
	})
	return start(t)(mux, nil)
}
