package spillmongo_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
)

// The client needs two more lines, and its calls do not change.
func Example() { //nolint:testableexamples // it needs a server; package suite of mongotest runs one
	retrier, err := spillmongo.New(options.Client().ApplyURI("mongodb://localhost:27017"), spillmongo.Config{AdaptiveRetries: true})
	if err != nil {
		log.Panic(err)
	}
	client, err := mongo.Connect(retrier.ClientOptions())
	if err != nil {
		log.Panic(err)
	}
	_, err = client.Database("shop").Collection("orders").InsertOne(context.Background(), bson.D{{Key: "_id", Value: 1}})
	fmt.Println(err, retrier.Stats(time.Now()).RetriesTotal)
}
