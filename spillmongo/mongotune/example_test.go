package mongotune_test //nolint:testableexamples // it needs a server

import (
	"context"
	"log"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotune"
	"github.com/seed90641741/spillway/tune"
)

// Operations should take 20 ms on average. The tuner reads the server twice a second.
func Example() {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost/?directConnection=true").SetAppName("tuner"))
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
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	follow(ctx, server, tuner, ticks.C)
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
