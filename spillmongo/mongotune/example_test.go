package mongotune_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
	"github.com/seed90641741/spillway/spillmongo/mongotune"
	"github.com/seed90641741/spillway/tune"
)

// Operations should take 20 ms on average. A program takes its ticks from a time.Ticker, twice
// a second or more often.
func Example() {
	// A deployment for tests takes the place of mongodb://…/?directConnection=true.
	d, err := mongotest.New(mongotest.Config{Topology: mongotest.Standalone, Parameters: bson.D{
		{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"tuner"}}}},
	}})
	check(err)
	defer d.Close()
	client, err := mongo.Connect(d.Options().SetAppName("tuner"))
	check(err)
	defer client.Disconnect(context.Background())

	ctx := context.Background()
	server, err := mongotune.New(ctx, mongotune.Config{Client: client, Enable: true})
	check(err)
	tuner, err := tune.New(tune.Config{
		Limit:   5000,
		Signals: []tune.Signal{{Name: "latency", Unit: "ms", Target: 20}},
		Enforce: true, // without it the log says what would be done
	})
	check(err)
	check(server.Set(ctx, tuner.Limit()))
	ticks := make(chan time.Time, 1)
	ticks <- time.Now()
	close(ticks)
	follow(ctx, server, tuner, ticks)
	settings, err := server.Settings(ctx)
	check(err)
	fmt.Println(settings.Enabled, settings.Rate, settings.BurstSeconds)
	// Output: true 5000 1
}

// follow lets the limit of a server follow what the server can do.
func follow(ctx context.Context, server *mongotune.Server, tuner *tune.Tuner, ticks <-chan time.Time) {
	for now := range ticks {
		r, err := server.Read(ctx, now)
		if err != nil { // nothing is known: the tuner goes back to 5000 if that lasts
			log.Print(err)
			r.Used, r.Latency = math.NaN(), math.NaN()
		}
		m, moved := tuner.Read(now, r.Used, r.Latency)
		if moved {
			log.Print(m)
		}
		if moved && m.Applied || r.Restarted {
			if err := server.Set(ctx, tuner.Limit()); err != nil {
				log.Print(err)
			}
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
