package docs

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

// orders is a service that says which class a call has, and whether it has a deadline.
type orders struct {
	pb.UnimplementedTestServiceServer
}

func (orders) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	text := spillway.CriticalityFrom(ctx).String()
	if _, ok := ctx.Deadline(); ok {
		text += " with a deadline"
	}
	return &pb.SimpleResponse{Username: text}, nil
}

// failing is a client of the service whose calls end with an error.
type failing struct {
	pb.TestServiceClient

	err error
}

func (c failing) UnaryCall(context.Context, *pb.SimpleRequest, ...grpc.CallOption) (*pb.SimpleResponse, error) {
	return nil, c.err
}

// busy is an error as spillgrpc makes it of an overloaded service.
type busy struct{}

func (busy) Error() string  { return "busy" }
func (busy) Throttle() bool { return true }

// A request whose call is rejected, by this process or by the service, is rejected itself, and not
// repeated by the layer above. All else is a failure.
func TestAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		err   error
		code  int
		retry string
	}{
		"by this process": {throttled(), http.StatusServiceUnavailable, "false"},
		"by the service":  {busy{}, http.StatusServiceUnavailable, "false"},
		"too late":        {status.Error(codes.DeadlineExceeded, ""), http.StatusGatewayTimeout, ""},
		"failed":          {status.Error(codes.Internal, ""), http.StatusBadGateway, ""},
	} {
		w := httptest.NewRecorder()
		price(failing{err: row.err})(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/price", nil))
		if got := w.Result(); got.StatusCode != row.code || got.Header.Get("X-Should-Retry") != row.retry {
			t.Errorf("%s: %s, X-Should-Retry %q", name, got.Status, got.Header.Get("X-Should-Retry"))
		}
	}
}

// TestFront: class and deadline of a request come to the service behind, and what it rejects is rejected.
func TestFront(t *testing.T) {
	server, err := rejecting()
	if err != nil {
		t.Fatal(err)
	}
	pb.RegisterTestServiceServer(server, orders{})
	l := bufconn.Listen(64 << 10)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	client, err := spillgrpc.NewClient(spillgrpc.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:orders", append(client.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	front, err := spillhttp.NewHandler(price(pb.NewTestServiceClient(conn)), spillhttp.HandlerConfig{
		Classify: func(*http.Request) spillway.Call {
			return spillway.Call{Criticality: spillway.Sheddable, Deadline: time.Now().Add(time.Second)}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = front.Close() }()
	for i, want := range []string{"SHEDDABLE with a deadline\n", "rejected: overload\n"} {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/price", nil))
		if got := w.Body.String(); got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
		if i == 1 && (w.Code != http.StatusServiceUnavailable || w.Header().Get("X-Should-Retry") != "false" || strings.Contains(w.Header().Get("X-Overload-Scope"), "task")) {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	if got := classOf(front, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/price", nil)); got != spillway.Sheddable {
		t.Errorf("the class is %v", got)
	}
}
