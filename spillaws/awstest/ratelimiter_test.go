package awstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

// limited returns a client that keeps the SDK's strategy and pays from l.
func limited(l *spillaws.RateLimiter, c aws.HTTPClient) *dynamodb.Client {
	return dynamodb.New(databaseOptions(c), func(o *dynamodb.Options) {
		o.Retryer = sdkretry.NewStandard(func(o *sdkretry.StandardOptions) { o.RateLimiter = l })
	})
}

func TestRateLimiter(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		b := bucket(500, 400)
		client := limited(must(spillaws.NewRateLimiter(b, "DynamoDB")), play(ok, busy, ok))
		for _, want := range []float64{401, 401} {
			if err := get(t.Context(), client); err != nil {
				t.Error(err)
			}
			// Before 2026, a retry that succeeds earns one token more than it cost.
			if got := b.Stats(time.Now()).Tokens; got != want && got != want+1 {
				t.Errorf("%v tokens, want %v", got, want)
			}
		}
	})
}

func TestRateLimiterRejects(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		err := get(t.Context(), limited(must(spillaws.NewRateLimiter(bucket(500, 3), "")), play(busy)))
		rejected, ok := errors.AsType[*retry.NotRetriedError](err)
		if !ok || rejected.Reason != retry.ReasonBudget || rejected.Tokens != 3 || rejected.Capacity != 500 {
			t.Errorf("%v does not give the level", err)
		}
		if _, ok := errors.AsType[*types.InternalServerError](err); !ok {
			t.Errorf("%v does not reach the answer of the service", err)
		}
	})
}

// TestRateLimiterHasAnAccount shows the key at work.
func TestRateLimiterHasAnAccount(t *testing.T) {
	accounts := must(budget.NewEndpoints(budget.EndpointsConfig{}))
	l := must(spillaws.NewRateLimiter(accounts, "DynamoDB"))
	release, err := l.GetToken(t.Context(), 5)
	if err != nil || accounts.Bucket("DynamoDB").Stats(time.Now()).Tokens != 495 {
		t.Fatal(err, accounts.Bucket("DynamoDB").Stats(time.Now()))
	}
	if err := release(); err != nil || accounts.Bucket("DynamoDB").Stats(time.Now()).Tokens != 500 {
		t.Error(err, accounts.Bucket("DynamoDB").Stats(time.Now()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.GetToken(ctx, 5); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := spillaws.NewRateLimiter(nil, ""); err == nil {
		t.Error("no error without a budget")
	}
}
