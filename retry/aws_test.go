package retry_test

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

var t0 = time.Unix(1_700_000_000, 0)

// noJitter makes every delay its longest, as the vectors have it.
func noJitter() float64 { return 1 }

// vectors reads a file of facts into v.
func vectors(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile("../conformance/retry/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

// bucket returns a bucket that holds tokens.
func bucket(capacity, tokens float64) *budget.Bucket {
	b := must(budget.New(budget.Config{Capacity: capacity, Empty: true}))
	b.Deposit("", tokens)
	return b
}

type awsCase struct {
	Name  string
	Given struct {
		Bucket, Capacity *float64
		Attempts         int  `json:"max_attempts"`
		Base             int  `json:"base_delay_ms"`
		MaxBackoff       int  `json:"max_backoff_ms"`
		LongPolling      bool `json:"long_polling"`
	}
	Steps []struct {
		Response awsResponse
		Expect   struct {
			Outcome string
			Quota   float64
			Delay   int `json:"delay_ms"`
		}
	}
}

type awsResponse struct {
	Status  int
	Code    string `json:"error_code"`
	Headers map[string]string
}

// failure classifies a response as an adapter for AWS does.
func (r awsResponse) failure() fault.Failure {
	f := fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Client}
	switch {
	case r.Code == "Throttling":
		f = fault.Failure{Safety: fault.RetrySafe, Party: fault.Client, Overload: true}
	case r.Code == "client:timeout":
		f = fault.Failure{Safety: fault.RetrySafe, Timeout: true}
	case r.Status >= 500:
		f = fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}
	}
	if ms, err := strconv.Atoi(r.Headers["x-amz-retry-after"]); err == nil && ms >= 0 {
		f.RetryAfter, f.HasRetryAfter = time.Duration(ms)*time.Millisecond, true
	}
	return f
}

// strategy returns the strategy that c describes, with its bucket.
func (c *awsCase) strategy(revision string, capacity float64) (*retry.AWSStandard, *budget.Bucket) {
	if c.Given.Capacity != nil {
		capacity = *c.Given.Capacity
	}
	tokens := capacity
	if c.Given.Bucket != nil {
		tokens = *c.Given.Bucket
	}
	b := bucket(capacity, tokens)
	return must(retry.NewAWSStandard(retry.AWSStandardConfig{
		Revision: revision, MaxAttempts: c.Given.Attempts, Budget: b, Rand: noJitter,
		Base:       time.Duration(c.Given.Base) * time.Millisecond,
		MaxBackoff: time.Duration(c.Given.MaxBackoff) * time.Millisecond,
	})), b
}

var awsOutcomes = map[string]retry.Reason{
	"fail":                  retry.ReasonNotRetryable,
	"max_attempts_exceeded": retry.ReasonAttempts,
	"retry_quota_exceeded":  retry.ReasonBudget,
}

// refresh is one failed attempt: what happened to it, and the delay.
func refresh(s retry.Strategy, token *retry.Token, f fault.Failure) (retry.Reason, time.Duration) {
	next, err := s.Refresh(t0, *token, f)
	*token = next
	if rejected, ok := errors.AsType[*retry.NotRetriedError](err); ok {
		return rejected.Reason, rejected.LongPollDelay
	}
	return retry.ReasonOther, next.Delay()
}

func (c *awsCase) run(t *testing.T, revision string, capacity float64) {
	s, b := c.strategy(revision, capacity)
	call := spillway.Call{LongPoll: c.Given.LongPolling}
	token := s.Begin(call)
	for i, step := range c.Steps {
		reason, delay := retry.ReasonOther, time.Duration(0)
		if step.Expect.Outcome == "success" {
			if err := s.Succeed(token); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			token = s.Begin(call)
		} else if reason, delay = refresh(s, &token, step.Response.failure()); reason != retry.ReasonOther {
			token = s.Begin(call)
		}
		if want := awsOutcomes[step.Expect.Outcome]; reason != want {
			t.Errorf("step %d: %v, want %v", i, reason, want)
		}
		if want := time.Duration(step.Expect.Delay) * time.Millisecond; delay != want {
			t.Errorf("step %d: delay %v, want %v", i, delay, want)
		}
		if got := b.Stats(time.Time{}).Tokens; got != step.Expect.Quota {
			t.Errorf("step %d: %v tokens left, want %v", i, got, step.Expect.Quota)
		}
	}
}

func TestAWS(t *testing.T) {
	for _, file := range []struct{ name, revision string }{
		{"aws_standard_2_0", "2.0"},
		{"aws_standard_2_1", "2.1"},
		{"aws_standard_2_1_retry_after", ""},
		{"aws_standard_2_1_long_polling", ""},
	} {
		var facts struct {
			Defaults struct {
				Capacity float64 `json:"bucket_capacity"`
			}
			Cases []awsCase
		}
		vectors(t, file.name+".json", &facts)
		if len(facts.Cases) == 0 {
			t.Fatalf("%s has no cases", file.name)
		}
		for _, c := range facts.Cases {
			t.Run(file.name+"/"+c.Name, func(t *testing.T) { c.run(t, file.revision, facts.Defaults.Capacity) })
		}
	}
}

// TestAWSConcurrent runs the calls of each case at once. Their order is open,
// the sum is not.
func TestAWSConcurrent(t *testing.T) {
	var facts struct {
		Cases []struct {
			awsCase

			Threads [][]int
			Quota   float64 `json:"expect_final_quota"`
		}
	}
	vectors(t, "aws_standard_2_1_concurrent.json", &facts)
	if len(facts.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range facts.Cases {
		s, b := c.strategy("2.1", 500)
		var wg sync.WaitGroup
		for _, thread := range c.Threads {
			wg.Go(func() {
				token := s.Begin(spillway.Call{})
				for _, status := range thread {
					if status == 200 {
						s.Succeed(token)
					} else if reason, _ := refresh(s, &token, awsResponse{Status: status}.failure()); reason != retry.ReasonOther {
						t.Errorf("%s: %v", c.Name, reason)
					}
				}
			})
		}
		wg.Wait()
		if got := b.Stats(time.Time{}).Tokens; got != c.Quota {
			t.Errorf("%s: %v tokens left, want %v", c.Name, got, c.Quota)
		}
	}
}
