package mongotest_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// A server rejects two pings and then recovers. The driver retries each, up to its configured
// number of retries.
func Example() {
	d, err := mongotest.New(mongotest.Config{}) // in a test: mongotest.Start(t, ...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()

	_, err = d.Node(0).RunCommand("admin", bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 2}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"ping"}},
			{Key: "errorCode", Value: 462},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	client, err := mongo.Connect(d.Options(), options.Client().SetMaxAdaptiveRetries(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())
	for range 2 {
		fmt.Println(client.Ping(context.Background(), nil))
	}
	fmt.Println("pings:", d.Node(0).Stats().Commands["ping"])
	// Output:
	// (IngressRequestRateLimitExceeded) Failing command via 'failCommand' failpoint
	// <nil>
	// pings: 3
}

// Three requests come to a server that takes two in a burst, and then one in a thousand
// seconds.
func ExampleConfig_parameters() {
	d, err := mongotest.New(mongotest.Config{Parameters: bson.D{
		{Key: "ingressRequestRateLimiterEnabled", Value: true},
		{Key: "ingressRequestAdmissionRatePerSec", Value: 0.001},
		{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: 2000},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	client, err := mongo.Connect(d.Options(), options.Client().SetMaxAdaptiveRetries(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())
	for range 3 {
		fmt.Println(client.Ping(context.Background(), nil) == nil)
	}
	fmt.Println("rejected:", d.Node(0).Stats().Rejected)
	// Output:
	// true
	// true
	// false
	// rejected: 1
}
