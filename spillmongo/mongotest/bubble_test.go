package mongotest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// TestBubble has a client and its server in a bubble: what takes ten seconds for them
// takes no time.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := mongotest.New(mongotest.Config{Nodes: 2, Pipes: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		client, err := mongo.Connect(d.Options())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Disconnect(t.Context())
		failCommand(t, d.Node(0), times(1), "failCommands", bson.A{"ping"}, "blockConnection", true, "blockTimeMS", 10_000)
		start := time.Now()
		if err := client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("a ping blocked for 10 s took %v", took)
		}
	})
}
