package suite_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

func onePooled(o *options.ClientOptions) { o.SetMaxPoolSize(1) }

// A pool of one connection is saturated from the first operation on. Those that come then wait by criticality,
// but for one, which is in the queue of the driver. None is rejected.
func TestQueueByCriticality(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mc := pipes
		mc.Work = mongotest.Work{Tickets: 1, Command: 10 * time.Millisecond}
		r := setUp(t, mc, spillmongo.Config{}, onePooled)
		var mu sync.Mutex
		var served []spillway.Criticality
		var all sync.WaitGroup
		call := func(n int, c spillway.Criticality) {
			for range n {
				all.Go(func() {
					if _, err := r.coll.InsertOne(spillway.WithCriticality(t.Context(), c), bson.D{}); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					served = append(served, c)
				})
				time.Sleep(10 * time.Microsecond)
			}
		}
		call(2, spillway.SheddablePlus) // one at the server, one in the driver
		call(3, spillway.Sheddable)
		call(3, spillway.CriticalPlus)
		call(3, spillway.Critical)
		all.Wait()
		if !slices.IsSortedFunc(served[2:], func(a, b spillway.Criticality) int { return int(b) - int(a) }) || served[0] != spillway.SheddablePlus {
			t.Errorf("served in the order %v", served)
		}
	})
}

// A caller that waits in the queue leaves at its deadline, with an error that is a timeout for the driver.
func TestQueueIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mc := pipes
		mc.Work = mongotest.Work{Tickets: 1, Command: time.Second}
		r := setUp(t, mc, spillmongo.Config{}, onePooled)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := r.coll.InsertOne(t.Context(), bson.D{}); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if _, err := r.coll.InsertOne(ctx, bson.D{}); !mongo.IsTimeout(err) || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		all.Wait()
	})
}

// Whatever an operation does with its connection, its place in the queue is free after it: retries, cursors and
// transactions that pin the connection, and failures.
func TestQueueLosesNoPlace(t *testing.T) {
	for _, topology := range []mongotest.Topology{mongotest.ReplicaSet, mongotest.Sharded, mongotest.LoadBalanced} {
		bubble(t, func(t *testing.T) {
			mc := pipes
			mc.Topology = topology
			r := setUp(t, mc, spillmongo.Config{}, onePooled)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for range 10 {
				if _, err := r.coll.InsertMany(ctx, []bson.D{{}, {}, {}, {}, {}}); err != nil {
					t.Fatal(topology, err)
				}
			}
			for range 10 {
				r.fail(0, times(2), overload("find", "insert", "getMore"))
				left, cancel := context.WithTimeout(ctx, time.Minute)
				if _, err := r.coll.InsertOne(left, bson.D{}); err != nil {
					t.Fatal(topology, err)
				}
				found, err := r.coll.Find(left, bson.D{}, options.Find().SetBatchSize(2))
				if err != nil {
					t.Fatal(topology, err)
				}
				if found.Next(left) && found.Close(left) != nil {
					t.Error(topology, "a cursor was not closed")
				}
				r.fail(0, times(20), overload("insert"))
				if _, err := r.coll.InsertOne(left, bson.D{}); err == nil {
					t.Error(topology, "no failure")
				}
				r.fail(0, "off", overload("insert"))
				if err := r.client.UseSession(left, func(ctx context.Context) error {
					_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
						return r.coll.InsertOne(ctx, bson.D{})
					})
					return err
				}); err != nil {
					t.Fatal(topology, err)
				}
				cancel()
			}
		})
	}
}
