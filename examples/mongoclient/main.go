// Mongoclient writes to a MongoDB, a few times, with retries that an overloaded
// server can bear, and prints the result of each write.
//
//	go run ./examples/mongoclient 'mongodb://127.0.0.1:27017/?adaptiveRetries=true'
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/spillmongo"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: mongoclient URI")
	}
	client, retrier, err := connect(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer func() { _ = client.Disconnect(ctx) }() // the program ends
	for range 5 {
		fmt.Println(write(ctx, client))
	}
	s := retrier.Stats(time.Now())
	fmt.Printf("%d overloads, %d retries, %v of backoff, %.1f tokens left\n", s.OverloadsTotal, s.RetriesTotal, s.Backoff, s.Budget.Tokens)
}

// connect returns a client whose retries are paid for twice: out of a bucket of the
// client, if the URI asks for one, and out of one for each server.
func connect(uri string) (*mongo.Client, *spillmongo.Retrier, error) {
	servers, err := budget.NewEndpoints(budget.EndpointsConfig{Bucket: budget.Config{Capacity: 100}})
	if err != nil {
		return nil, nil, err
	}
	retrier, err := spillmongo.New(options.Client().ApplyURI(uri), spillmongo.Config{ServerBudgets: servers})
	if err != nil {
		return nil, nil, err
	}
	for _, w := range retrier.Warnings() {
		fmt.Println(w)
	}
	client, err := mongo.Connect(retrier.ClientOptions())
	return client, retrier, err
}

// write writes once. There is no loop around it: the client has retried already.
func write(ctx context.Context, client *mongo.Client) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := client.Database("shop").Collection("orders").InsertOne(ctx, bson.D{{Key: "at", Value: time.Now()}})
	var labeled mongo.LabeledError
	switch {
	case err == nil:
		return "written"
	case errors.As(err, &labeled) && labeled.HasErrorLabel("SystemOverloadedError"):
		return "the server is overloaded: " + err.Error()
	default:
		return "failed: " + err.Error()
	}
}
