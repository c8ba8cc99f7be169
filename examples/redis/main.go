// Redis is a client of a Redis or Valkey server behind Spillway. Run it with
//
//	go run ./examples/redis 127.0.0.1:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillredis"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: redis ADDRESS")
	}
	client, err := newClient(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the program ends
	fmt.Println(call(context.Background(), client))
}

// newClient returns a client with at most 100 commands in flight.
func newClient(addr string) (*redis.Client, error) {
	return spillredis.NewClient(&redis.Options{Addr: addr}, egress.Config{MaxInFlight: 100})
}

func call(ctx context.Context, client *redis.Client) string {
	// A cache is the first to be rejected.
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
	switch value, err := client.Get(ctx, "greeting").Result(); {
	case err == nil:
		return "in the cache: " + value
	case errors.Is(err, redis.Nil):
		return "not in the cache"
	case errors.Is(err, spillway.ErrRejected):
		return "the server is overloaded: the command was never sent"
	default:
		return err.Error()
	}
}
