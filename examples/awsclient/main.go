// Awsclient lists the tables of a DynamoDB, or of what answers in its place, with
// retries that pay from one budget, and prints the result.
//
//	go run ./examples/awsclient http://127.0.0.1:8000
//
// AWS_RETRY_MODE, AWS_MAX_ATTEMPTS and the profile count as ever.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: awsclient URL")
	}
	shared, err := budget.New(budget.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := newClient(context.Background(), os.Args[1], shared)
	if err != nil {
		log.Fatal(err)
	}
	for range 5 {
		fmt.Printf("%s; %v tokens left\n", call(context.Background(), client), shared.Stats(time.Now()).Tokens)
	}
}

// newClient returns a client whose retries pay from shared, as the retries of clients
// for other protocols may.
func newClient(ctx context.Context, url string, shared retry.Budget) (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithBaseEndpoint(url),
		config.WithRegion("eu-west-1"),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")),
	)
	if err != nil {
		return nil, err
	}
	if _, err := spillaws.Install(&cfg, spillaws.Config{Budget: shared}); err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg), nil
}

// call makes one call and returns its result as text.
func call(ctx context.Context, client *dynamodb.Client) string {
	tables, err := client.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(10)})
	stopped, ok := errors.AsType[*retry.Error](err)
	switch {
	case err == nil:
		return fmt.Sprintf("%d tables", len(tables.TableNames))
	case ok && stopped.Reason == retry.ReasonBudget:
		return "no retry, to spare the service: " + stopped.Why.Error()
	default:
		return "failed: " + err.Error()
	}
}
