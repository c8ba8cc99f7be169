package suite_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// A server that rejects the first two attempts is no trouble to the caller.
func Example() {
	server, err := mongotest.New(mongotest.Config{})
	check(err)
	defer server.Close()
	retrier, err := spillmongo.New(options.Client().ApplyURI(server.URI()), spillmongo.Config{AdaptiveRetries: true})
	check(err)
	client, err := mongo.Connect(retrier.ClientOptions())
	check(err)
	defer client.Disconnect(context.Background())

	_, err = server.Node(0).RunCommand("admin", bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 2}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"insert"}},
			{Key: "errorCode", Value: 462},
			{Key: "errorLabels", Value: bson.A{"SystemOverloadedError", "RetryableError"}},
		}},
	})
	check(err)
	_, err = client.Database("shop").Collection("orders").InsertOne(context.Background(), bson.D{{Key: "_id", Value: 1}})
	stats := retrier.Stats(time.Now())
	fmt.Println(err, stats.OverloadsTotal, stats.RetriesTotal, stats.RecoveredTotal, stats.Budget.Tokens)
	// Output: <nil> 2 2 1 999.1
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
