package awstest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

// overloaded is a service that throttles every request.
type overloaded struct{}

func (overloaded) Do(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: make(http.Header), Request: req,
		Body: io.NopCloser(strings.NewReader(`{"__type":"ThrottlingException","message":"slow down"}`)),
	}, nil
}

// configuration is what config.LoadDefaultConfig returns, with the service above
// in place of AWS.
func configuration() aws.Config {
	return aws.Config{
		Region:      "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
		HTTPClient:  overloaded{},
	}
}

// All clients of a configuration, and other clients that have the budget, pay for retries
// from one budget. Here it is empty.
func Example_install() {
	shared, err := budget.New(budget.Config{Empty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := configuration()
	if _, err := spillaws.Install(&cfg, spillaws.Config{Budget: shared}); err != nil {
		fmt.Println(err)
		return
	}
	client := dynamodb.NewFromConfig(cfg)
	_, err = client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	fmt.Println(err)
	// Output:
	// operation error DynamoDB: ListTables, retry: gave up after 1 attempt: not retried: retry budget exhausted: 0 of 500 tokens left, a retry costs 5 (it refills with later calls): last error: https response error StatusCode: 400, RequestID: , ThrottlingException: slow down
}

// The numbers that AWS SDKs have for DynamoDB, for one client, on a budget that
// others share.
func Example_new() {
	shared, err := budget.New(budget.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	strategy, err := retry.NewAWSStandard(retry.AWSStandardConfig{
		MaxAttempts: 4, Base: 25 * time.Millisecond, OverloadBase: time.Millisecond, Budget: shared,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	retryer, err := spillaws.New(spillaws.Config{Strategy: strategy, MaxAttempts: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := dynamodb.NewFromConfig(configuration(), func(o *dynamodb.Options) {
		o.Retryer = retryer
		o.APIOptions = append(o.APIOptions, retryer.Wrap)
	})
	_, err = client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	fmt.Println(err)
	fmt.Println(shared.Stats(time.Now()).Tokens, "tokens left")
	// Output:
	// operation error DynamoDB: ListTables, exceeded maximum number of attempts, 4, https response error StatusCode: 400, RequestID: , ThrottlingException: slow down
	// 485 tokens left
}

// The SDK's own strategy, with a budget that other protocols share.
func Example_rateLimiter() {
	shared, err := budget.New(budget.Config{Empty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter, err := spillaws.NewRateLimiter(shared, "DynamoDB")
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := configuration()
	cfg.Retryer = func() aws.Retryer {
		return sdkretry.NewStandard(func(o *sdkretry.StandardOptions) { o.RateLimiter = limiter })
	}
	client := dynamodb.NewFromConfig(cfg)
	_, err = client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	fmt.Println(strings.Contains(err.Error(), "retry budget exhausted: 0 of 500 tokens left"))
	// Output:
	// true
}

// Patient is a strategy of the user, in the terms of Smithy's guide. Each call
// may be retried for the time that Patience allows, in steps that grow with the
// time that the service has been overloaded for this call; other failures are
// retried once.
type Patient struct {
	Step, Patience time.Duration

	tokens retry.TokenSource // makes the RetryTokens, and knows its own
}

// waited is what Patient remembers of a call, in addition to retry.State.
type waited struct{ sum, last time.Duration }

// Begin is acquireInitialToken.
func (p *Patient) Begin(call spillway.Call) retry.Token { return p.tokens.Begin(call, 0) }

// Refresh is refreshRetryToken. The Failure is both RetryInfo and ErrorInfo.
func (p *Patient) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	state, err := p.tokens.Claim(t) // a token is good for one use
	if err != nil {
		return retry.Token{}, err
	}
	delay, reason := p.decide(now, state, f)
	if reason != retry.ReasonOther {
		state.End()
		return retry.Token{}, &retry.NotRetriedError{Reason: reason, Delay: delay}
	}
	return state.Next(delay), nil
}

func (p *Patient) decide(now time.Time, s *retry.State, f fault.Failure) (time.Duration, retry.Reason) {
	w, _ := s.Data.(waited)
	switch {
	case !f.Retryable(s.Call.Idempotent || s.Call.Kind == spillway.KindRead): // isRetrySafe
		return 0, retry.ReasonNotRetryable
	case f.Overload: // isThrottle
		w.last += p.Step
	case s.Number > 0:
		return 0, retry.ReasonAttempts
	}
	if f.HasRetryAfter { // retryAfter: a longer delay is allowed, a shorter one is not
		w.last = max(w.last, f.RetryAfter)
	}
	w.sum += w.last
	if w.sum > p.Patience {
		return 0, retry.ReasonAttempts
	}
	if end := s.Call.Deadline; !end.IsZero() && !now.Add(w.last).Before(end) {
		return w.last, retry.ReasonDeadline
	}
	s.Data = w
	return w.last, retry.ReasonOther
}

// Succeed is recordSuccess.
func (p *Patient) Succeed(t retry.Token) error { return p.end(t) }

// Release is what Smithy's interface lacks: the call ended without success.
func (p *Patient) Release(t retry.Token, _ fault.Failure) error { return p.end(t) }

func (p *Patient) end(t retry.Token) error {
	state, err := p.tokens.Claim(t)
	if err == nil {
		state.End()
	}
	return err
}

func Example_config() {
	cfg := configuration()
	_, err := spillaws.Install(&cfg, spillaws.Config{
		Strategy: &Patient{Step: time.Millisecond, Patience: 10 * time.Millisecond},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := dynamodb.NewFromConfig(cfg)
	_, err = client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	fmt.Println(err) // after 1, 2, 3 and 4 ms
	// Output:
	// operation error DynamoDB: ListTables, retry: gave up after 5 attempts: not retried: no more attempts are allowed (each has failed; see the last error): last error: https response error StatusCode: 400, RequestID: , ThrottlingException: slow down
}

// A loop of the user around a client that does not retry.
func Example_classify() {
	cfg := configuration()
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	_, err := dynamodb.NewFromConfig(cfg).ListTables(context.Background(), &dynamodb.ListTablesInput{})
	f := spillaws.Classify(err)
	fmt.Println("overloaded:", f.Overload, "safe:", f.Safety == fault.RetrySafe)
	// Output:
	// overloaded: true safe: true
}
