//go:build thorough

package drivers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	old "go.mongodb.org/mongo-driver/mongo"
	oldoptions "go.mongodb.org/mongo-driver/mongo/options"
	today "go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// oldClient is one of a driver from before backpressure.
func oldClient(t *testing.T, address string) *old.Client {
	t.Helper()
	c, err := old.Connect(context.Background(), oldoptions.Client().ApplyURI(
		fmt.Sprintf("mongodb://%s/?directConnection=true&maxPoolSize=100", address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c
}

// spike lets many workers insert and find at the rate of each, all at once, for a while,
// and returns how many commands succeeded and failed.
func spike(t *testing.T, c *old.Client, workers int, every, d time.Duration) (served, failed int64) {
	t.Helper()
	coll := c.Database("test").Collection("spike")
	var ok, bad atomic.Int64
	var all sync.WaitGroup
	until := time.Now().Add(d)
	for w := range workers {
		all.Go(func() {
			pace := time.NewTicker(every)
			defer pace.Stop()
			for i := 0; time.Now().Before(until); i++ {
				var err error
				if i%2 == 0 {
					_, err = coll.InsertOne(t.Context(), bson.D{{Key: "w", Value: w}, {Key: "i", Value: i}})
				} else {
					err = coll.FindOne(t.Context(), bson.D{{Key: "w", Value: w}}).Err()
				}
				if err != nil {
					bad.Add(1)
					t.Log(err)
				} else {
					ok.Add(1)
				}
				<-pace.C
			}
		})
	}
	all.Wait()
	return ok.Load(), bad.Load()
}

// TestOldDriverSurvivesSpike has five times as much come as a server lets in, from a
// driver that knows nothing of it.
func TestOldDriverSurvivesSpike(t *testing.T) {
	const rate, workers, every = 200, 20, 20 * time.Millisecond // 1000 a second wanted
	backend := mongotest.Config{Parameters: today.D{
		{Key: "ingressRequestRateLimiterEnabled", Value: true},
		{Key: "ingressRequestAdmissionRatePerSec", Value: rate},
		{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: 0.1},
	}}
	t.Run("without the proxy", func(t *testing.T) {
		d := mongotest.Start(t, backend)
		if served, failed := spike(t, oldClient(t, d.Node(0).Addr()), workers, every, time.Second); failed < served {
			t.Errorf("%d served, %d failed: there was no spike", served, failed)
		}
	})
	for _, test := range []struct {
		name   string
		most   int64 // failures in a hundred commands
		change func(*config.Mongo)
	}{
		// Five retries leave a few, as the specification has them: the last comes after
		// 1.6 s on average, whatever the server says then.
		{"retries alone", 5, nil},
		{"retries and a queue", 0, func(m *config.Mongo) {
			m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: rate * 0.9, RequestBurst: 0.1, RequestDepth: 100}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, backend, test.change)
			served, failed := spike(t, oldClient(t, s.addr()), workers, every, 2*time.Second)
			st := s.stats()
			t.Logf("%d served, %d failed; %d answers of overload, %d retries, %d queued", served, failed, st.Overloads, st.Retries, st.Gate.RateLimit.QueuedTotal)
			if failed*100 > served*test.most || served < rate {
				t.Errorf("%d served, %d failed", served, failed)
			}
			if st.Overloads+st.Gate.RateLimit.QueuedTotal == 0 {
				t.Error("there was no spike")
			}
		})
	}
}
