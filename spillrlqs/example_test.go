package spillrlqs_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillrlqs"
)

func Example() {
	serve := func(ctx context.Context, listener net.Listener) error {
		s, err := spillrlqs.New(spillrlqs.Config{Fleet: fleet.Config{
			Tasks: 20, // Envoys, about
			Limits: quota.LocalConfig{
				Customers:    map[string]quota.Limit{"mail": {Rate: 1000}}, // per second, through all Envoys
				DefaultLimit: quota.Limit{Rate: 10},                        // each customer that is not listed
			},
		}})
		if err != nil {
			return err
		}
		go s.Run(ctx)
		g := grpc.NewServer()
		context.AfterFunc(ctx, g.Stop)
		s.Register(g)
		return g.Serve(listener)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the example ends at once
	_ = serve(ctx, listener)
	// Output:
}
