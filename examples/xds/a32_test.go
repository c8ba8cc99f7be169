package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillxds"
)

// dial opens a plain gRPC channel under circuit breaking (gRFC A32): the control plane
// sets max_requests of the cluster users, live, and gets load reports with the drops.
func dial(config spillxds.Config, target string) (*spillxds.Client, *grpc.ClientConn, error) {
	client, err := spillxds.New(config)
	if err != nil {
		return nil, nil, err
	}
	balancer.Register(spillgrpc.NewBalancer(client.Registry())) // before the first channel
	users, err := client.Cluster(inflight.Key{Cluster: "users"})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	conn, err := grpc.NewClient(target, append(users.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	return client, conn, err
}

// output is what several goroutines write.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestA32(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var out output
	p := newPlane(listener, &out, 50*time.Millisecond)
	defer p.close()
	boot, err := spillxds.ParseBootstrap([]byte(bootstrap(listener.Addr())))
	if err != nil {
		t.Fatal(err)
	}
	backend := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(backend, testServer{})
	client, conn, err := dial(spillxds.Config{Bootstrap: boot, MinReportInterval: 10 * time.Millisecond}, listen(t, backend).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	calls := testgrpc.NewTestServiceClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	users := inflight.Key{Cluster: "users"}
	open := 0
	for _, limit := range []int{1, 3} {
		if err := p.set("users", uint32(limit)); err != nil {
			t.Fatal(err)
		}
		for client.Registry().Stats(time.Now())[users].MaxInFlight != limit {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("the limit %d never comes", limit)
			}
		}
		for ; open < limit; open++ {
			if _, err := calls.FullDuplexCall(ctx, grpc.WaitForReady(true)); err != nil {
				t.Fatalf("call %d of %d: %v", open+1, limit, err)
			}
		}
		if _, err := calls.UnaryCall(ctx, new(testgrpc.SimpleRequest)); !errors.Is(err, spillway.ErrRejected) {
			t.Errorf("a call beyond the limit %d: %v, want a drop", limit, err)
		}
	}
	if n := client.Registry().Stats(time.Now())[users].InFlight; n != 3 {
		t.Errorf("%d in flight, want 3", n)
	}
	cancel()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if issued, dropped := reported(out.String()); issued != 3 || dropped != 2 {
		t.Errorf("the reports have %d issued and %d dropped, want 3 and 2:\n%s", issued, dropped, out.String())
	}
}

// reported adds up what the control plane has printed of load reports.
func reported(text string) (issued, dropped int) {
	for line := range strings.Lines(text) {
		var i, p, d int
		if _, err := fmt.Sscanf(line, "control plane: users issued %d, has %d in progress, dropped %d", &i, &p, &d); err == nil {
			issued, dropped = issued+i, dropped+d
		}
	}
	return issued, dropped
}
