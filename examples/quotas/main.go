// Quotas limits what each customer may use, over all tasks of a service. It is the program of docs/quota-fleet.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillredis/board"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "address of this task")
	server := flag.String("redis", "", "address of a server of Redis or Valkey; without one, the limits are for this task alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", listener.Addr())
	if err := serve(ctx, listener, *server); err != nil {
		log.Fatal(err)
	}
}

// limits are per second, and the same in all tasks.
var limits = quota.LocalConfig{
	Customers:     map[string]quota.Limit{"mail": {Rate: 100}},
	DefaultLimit:  quota.Limit{Rate: 10}, // each customer that is not listed
	UnlistedTotal: quota.Limit{Rate: 50}, // all of them together
}

// serve serves until ctx ends.
func serve(ctx context.Context, listener net.Listener, redisAddress string) error {
	allocator, left, err := share(ctx, redisAddress)
	if err != nil {
		return err
	}
	gates, err := ingress.New(ingress.Config{Quota: quota.Config{Allocator: allocator}})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "served") })
	handler, err := spillhttp.NewHandler(mux, spillhttp.HandlerConfig{Ingress: gates, Classify: classify})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	drained := make(chan error, 1)
	context.AfterFunc(ctx, func() { drained <- server.Shutdown(context.Background()) })
	if err := handler.Serve(server, listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-left // so that the other tasks get the share of this one at once

	return errors.Join(<-drained, gates.Close()) // the last request has ended
}

// share returns who decides what each customer may use, and a channel that is closed when this
// task has left the others.
func share(ctx context.Context, redisAddress string) (quota.Allocator, <-chan struct{}, error) {
	left := make(chan struct{})
	if redisAddress == "" {
		close(left)
		local, err := quota.NewLocal(limits)
		return local, left, err
	}
	f, err := fleet.New(fleet.Config{Tasks: 2, Limits: limits}) // Tasks is about how many there are
	if err != nil {
		return nil, nil, err
	}
	client := board.Connect(redis.UniversalOptions{Addrs: []string{redisAddress}})
	b, err := board.New(client, board.Config{Domain: "shop"}) // tasks with the same domain share
	if err != nil {
		return nil, nil, err
	}
	go func() {
		defer close(left)
		fleet.Run(ctx, f, b)
		_ = client.Close() // nothing is left to send
	}()
	return f, left, nil
}

// classify says whose request it is. Take the customer from what you have verified, such as a
// token or a certificate: any client can send this header.
func classify(r *http.Request) spillway.Call {
	return spillway.Call{Customer: r.Header.Get("X-Customer")}
}
