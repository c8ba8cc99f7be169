package suite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// benchClients are clients of one deployment: two with the plain driver, which show the noise
// of the measurement, one with the policy, and one with adaptive retries.
func benchClients(tb testing.TB) (colls [4]*mongo.Collection) {
	d := mongotest.Start(tb, mongotest.Config{})
	for i, o := range []*options.ClientOptions{
		d.Options(),
		d.Options(),
		must(spillmongo.New(d.Options(), spillmongo.Config{})).ClientOptions(),
		must(spillmongo.New(d.Options(), spillmongo.Config{AdaptiveRetries: true})).ClientOptions(),
	} {
		client := must(mongo.Connect(o))
		tb.Cleanup(func() { client.Disconnect(context.Background()) })
		colls[i] = client.Database("test").Collection("things")
	}
	must(colls[0].InsertOne(tb.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "thing"}}))
	return colls
}

var benchNames = [4]string{"bare", "noise", "ours", "adaptive"}

func findOne(ctx context.Context, b *testing.B, c *mongo.Collection) {
	if err := c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}).Err(); err != nil {
		b.Error(err)
	}
}

// callsInTurn is how many calls are made through one client before the next client.
const callsInTurn = 32

// BenchmarkOverhead makes calls through each client in turn, in an order that is shuffled for
// each round. A round is so short that other load on the machine affects all of its turns;
// each client is compared with the first one in the same round. It reports the median duration
// of a call with the plain driver and, for each other client, the medians over all rounds of
// how much higher its duration and how much lower its throughput is.
func BenchmarkOverhead(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			colls := benchClients(b)
			order := []int{0, 1, 2, 3}
			var bare []float64
			var slower, less [len(benchNames)][]float64
			for b.Loop() {
				var call, all [len(benchNames)]float64
				rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
				for _, i := range order {
					call[i], all[i] = turn(b, colls[i], callers)
				}
				bare = append(bare, call[0])
				for i := range colls {
					slower[i] = append(slower[i], 100*(call[i]/call[0]-1))
					less[i] = append(less[i], 100*(1-all[0]/all[i]))
				}
			}
			b.ReportMetric(median(bare)/1e3, "bare-p50-us")
			for i, name := range benchNames[1:] {
				b.ReportMetric(median(slower[i+1]), name+"-p50-%")
				b.ReportMetric(median(less[i+1]), name+"-throughput-loss-%")
			}
		})
	}
}

func median(d []float64) float64 {
	slices.Sort(d)
	return d[len(d)/2]
}

// turn makes calls as so many callers at once. It returns the median of how long each
// took, and how long they took together.
func turn(b *testing.B, c *mongo.Collection, callers int) (call, all float64) {
	took := make([]float64, callsInTurn)
	begin := time.Now()
	var work sync.WaitGroup
	for mine := range slices.Chunk(took, callsInTurn/callers) {
		work.Go(func() {
			for i := range mine {
				start := time.Now()
				findOne(b.Context(), b, c)
				mine[i] = float64(time.Since(start))
			}
		})
	}
	work.Wait()
	all = float64(time.Since(begin))
	return median(took), all
}

// BenchmarkFindOne shows time and allocations of one call.
func BenchmarkFindOne(b *testing.B) {
	colls := benchClients(b)
	for i, name := range benchNames {
		b.Run("impl="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				findOne(b.Context(), b, colls[i])
			}
		})
	}
}
