package docs

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

// price serves the answer of a gRPC service.
func price(orders pb.TestServiceClient) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reply, err := orders.UnaryCall(r.Context(), &pb.SimpleRequest{}) // with the class and the deadline of r
		if err != nil {
			answer(w, r, err)
			return
		}
		fmt.Fprintln(w, reply.GetUsername())
	}
}

// answer answers a request that needs a call which has failed.
func answer(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, spillway.ErrRejected), fault.Of(err).Overload: // by this process; by the service
		spillhttp.Reject(w, r, ingress.Rejection{DontRetry: true})
	case status.Code(err) == codes.DeadlineExceeded:
		http.Error(w, "too late", http.StatusGatewayTimeout)
	default:
		http.Error(w, "no price", http.StatusBadGateway)
	}
}

// throttled returns an error as that of a call which the throttle of this process has rejected.
func throttled() error {
	return &spillway.RejectedError{Policy: "throttle", Reason: spillway.ReasonThrottle}
}

// classOf returns the class that a request would have.
func classOf(front *spillhttp.Handler, r *http.Request) spillway.Criticality {
	call, _ := front.Judge(time.Now(), r)
	return call.Criticality
}

// rejecting returns a gRPC server that serves the first call and rejects all others.
func rejecting() (*grpc.Server, error) {
	gates, err := ingress.New(ingress.Config{RateLimit: ratelimit.Config{Rate: 0.01, BurstSeconds: 100}})
	if err != nil {
		return nil, err
	}
	protection, err := spillgrpc.NewServer(spillgrpc.ServerConfig{Ingress: gates})
	if err != nil {
		return nil, err
	}
	return grpc.NewServer(protection.Options()...), nil
}
