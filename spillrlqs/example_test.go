package spillrlqs_test

import (
	"context"
	"log"
	"net"

	"google.golang.org/grpc"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillrlqs"
)

func Example() {
	s, err := spillrlqs.New(spillrlqs.Config{Fleet: fleet.Config{
		Tasks: 20, // Envoys, about
		Limits: quota.LocalConfig{
			Customers:    map[string]quota.Limit{"mail": {Rate: 1000}}, // per second, through all Envoys
			DefaultLimit: quota.Limit{Rate: 10},                        // each customer that is not listed
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go s.Run(ctx)
	g := grpc.NewServer()
	s.Register(g)
	go func() {
		g.Stop() // the example ends at once
		cancel()
	}()
	_ = g.Serve(listener)
	// Output:
}
