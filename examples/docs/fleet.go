package docs

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillredis/board"
)

// quotas returns a handler whose customers have quotas over all tasks.
func quotas(ctx context.Context, mux http.Handler) (*spillhttp.Handler, error) {
	f, err := fleet.New(fleet.Config{
		Tasks: 20, // about how many there are
		Limits: quota.LocalConfig{
			Customers:    map[string]quota.Limit{"mail": {Rate: 1000}}, // per second, in all tasks
			DefaultLimit: quota.Limit{Rate: 10},                        // each customer that is not listed
		},
	})
	if err != nil {
		return nil, err
	}
	b, err := board.New(board.Connect(redis.UniversalOptions{Addrs: []string{"redis:6379"}}), board.Config{Domain: "shop"})
	if err != nil {
		return nil, err
	}
	go fleet.Run(ctx, f, b) // when ctx ends it says goodbye, and returns within a second
	gates, err := ingress.New(ingress.Config{Quota: quota.Config{Allocator: f}})
	if err != nil {
		return nil, err
	}
	return spillhttp.NewHandler(mux, spillhttp.HandlerConfig{Ingress: gates, Classify: func(r *http.Request) spillway.Call {
		user, _, _ := r.BasicAuth() // whom your authentication has verified
		return spillway.Call{Customer: user}
	}})
}

// raise changes the limit of a customer while f is in use.
func raise(f *fleet.Fleet, c fleet.Config) error {
	c.Limits.Customers = map[string]quota.Limit{"mail": {Rate: 2000}}
	if err := f.Update(c); err != nil {
		return err // nothing has changed
	}
	return nil
}

// shards returns an allocator that divides customers over several boards.
func shards(ctx context.Context, c fleet.Config, client redis.UniversalClient) (quota.Allocator, error) {
	all := make(fleet.Shards, 4) // the same number in all tasks
	for i := range all {
		f, err := fleet.New(c)
		if err != nil {
			return nil, err
		}
		b, err := board.New(client, board.Config{Domain: fmt.Sprint("shop-", i)}) // in a cluster, each on a node of its own
		if err != nil {
			return nil, err
		}
		go fleet.Run(ctx, f, b)
		all[i] = f
	}
	return all, nil
}

// region returns an allocator of a task whose region shares quotas with other regions.
func region(ctx context.Context, client, elsewhere redis.UniversalClient) (quota.Allocator, error) {
	limits := quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: 1000}}} // in all regions
	above, err := fleet.New(fleet.Config{
		Task: "eu", Tasks: 3, Limits: limits, // this region, of three
		Interval: 500 * time.Millisecond, Hold: 5 * time.Second, Grace: 15 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(fleet.Config{Tasks: 60, Limits: limits, Above: above}) // about 60 tasks in all regions
	if err != nil {
		return nil, err
	}
	near, err := board.New(client, board.Config{Domain: "shop-eu"}) // a server in this region
	if err != nil {
		return nil, err
	}
	far, err := board.New(elsewhere, board.Config{Domain: "shop"}) // a server that all regions reach
	if err != nil {
		return nil, err
	}
	go fleet.RunRegion(ctx, f, near, far)
	return f, nil
}
