package awstest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

const conformance = "../../conformance/retry/"

type vector struct {
	Name  string
	Given struct {
		Bucket, Capacity *float64
		Attempts         int  `json:"max_attempts"`
		Base             int  `json:"base_delay_ms"`
		MaxBackoff       int  `json:"max_backoff_ms"`
		LongPolling      bool `json:"long_polling"`
	}
	Steps []step
}

type step struct {
	Response response
	Expect   struct {
		Outcome string
		Quota   float64
		Delay   int `json:"delay_ms"`
	}
}

type response struct {
	Status  int
	Code    string `json:"error_code"`
	Headers map[string]string
}

// never represents an answer that does not come in time.
const never = "client:timeout"

// retryer returns the Retryer that v describes, with its bucket. All delays are
// u times their longest.
func (v *vector) retryer(revision string, u float64) (*spillaws.Retryer, *budget.Bucket) {
	capacity := 500.0
	if v.Given.Capacity != nil {
		capacity = *v.Given.Capacity
	}
	tokens := capacity
	if v.Given.Bucket != nil {
		tokens = *v.Given.Bucket
	}
	attempts, b := cmp.Or(v.Given.Attempts, 3), bucket(capacity, tokens)
	strategy := must(retry.NewAWSStandard(retry.AWSStandardConfig{
		Revision: revision, MaxAttempts: attempts, Budget: b, Rand: func() float64 { return u },
		Base:       time.Duration(v.Given.Base) * time.Millisecond,
		MaxBackoff: time.Duration(v.Given.MaxBackoff) * time.Millisecond,
	}))
	return must(spillaws.New(spillaws.Config{Strategy: strategy, MaxAttempts: attempts})), b
}

// operation returns a call of the kind that v is about.
func (v *vector) operation(r *spillaws.Retryer, c aws.HTTPClient) func(context.Context) error {
	if v.Given.LongPolling {
		client := queue(r, c)
		return func(ctx context.Context) error { return receive(ctx, client) }
	}
	client := database(r, c)
	return func(ctx context.Context) error { return get(ctx, client) }
}

// A replay is the service of a vector. It answers one step after the other, and
// checks the result of each when the next request arrives.
type replay struct {
	*testing.T

	steps []step
	next  int
	at    time.Time // when the last step was answered
	exact bool      // delays are to be checked
	b     *budget.Bucket
}

func (r *replay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.next > 0 && r.steps[r.next-1].Expect.Outcome == "retry" {
		r.check("retry")
	}
	if r.next == len(r.steps) {
		r.Error("a request too many")
		return
	}
	response := r.steps[r.next].Response
	r.next++
	r.at = time.Now()
	if response.Code == never {
		r.at = r.at.Add(timeout)
		io.Copy(io.Discard, req.Body) // or the client never gets to waiting
		<-req.Context().Done()
		return
	}
	for key, value := range response.Headers {
		w.Header().Set(key, value)
	}
	answer(w, response.Status, response.Code)
}

// check compares the result of the last step with the expected one.
func (r *replay) check(outcome string) {
	i := r.next - 1
	want := r.steps[i].Expect
	if outcome != want.Outcome {
		r.Errorf("step %d: %s, want %s", i, outcome, want.Outcome)
	}
	if delay := time.Duration(want.Delay) * time.Millisecond; r.exact && time.Since(r.at) != delay {
		r.Errorf("step %d: delay %v, want %v", i, time.Since(r.at), delay)
	}
	if got := r.b.Stats(time.Now()).Tokens; got != want.Quota {
		r.Errorf("step %d: %v tokens left, want %v", i, got, want.Quota)
	}
}

// run makes calls until all steps were made.
func (r *replay) run(call func(context.Context) error) {
	for r.next < len(r.steps) {
		before := r.next
		err := call(r.Context())
		if r.next == before {
			r.Fatalf("no request was made: %v", err)
		}
		r.check(outcomeOf(r.T, err))
		if last := r.steps[r.next-1].Response; err != nil && last.Code != never && statusOf(err) != last.Status {
			r.Errorf("the answer of the service is lost: %v", err)
		}
	}
}

// statusOf returns the status of the answer that err reaches.
func statusOf(err error) int {
	e, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok {
		return 0
	}
	return e.HTTPStatusCode()
}

// outcomeOf says in the words of the vectors how a call ended.
func outcomeOf(t *testing.T, err error) string {
	stopped, ok := errors.AsType[*retry.Error](err)
	_, all := errors.AsType[*sdkretry.MaxAttemptsError](err)
	switch {
	case err == nil:
		return "success"
	case ok && stopped.Reason == retry.ReasonBudget:
		return "retry_quota_exceeded"
	case ok:
		t.Errorf("unexpected end: %v", err)
		return "?"
	case all:
		return "max_attempts_exceeded"
	default:
		return "fail"
	}
}

// eachVector calls f for each case of the files.
func eachVector(t *testing.T, f func(t *testing.T, v *vector, revision string)) {
	for _, file := range []struct{ name, revision string }{
		{"aws_standard_2_0", "2.0"},
		{"aws_standard_2_1", "2.1"},
		{"aws_standard_2_1_retry_after", "2.1"},
		{"aws_standard_2_1_long_polling", "2.1"},
	} {
		var facts struct{ Cases []vector }
		vectors(t, conformance+file.name+".json", &facts)
		if len(facts.Cases) == 0 {
			t.Fatalf("%s has no cases", file.name)
		}
		for _, v := range facts.Cases {
			t.Run(file.name+"/"+v.Name, func(t *testing.T) { f(t, &v, file.revision) })
		}
	}
}

// TestVectors replays the vectors through clients of AWS and their retry loop,
// and checks what is decided, paid and waited.
func TestVectors(t *testing.T) {
	inBothBehaviours(t, func(t *testing.T) {
		eachVector(t, func(t *testing.T, v *vector, revision string) {
			synctest.Test(t, func(t *testing.T) {
				r, b := v.retryer(revision, 1)
				service := &replay{T: t, steps: v.Steps, exact: true, b: b}
				service.run(v.operation(r, serve(t, service.ServeHTTP)))
			})
		})
	})
}

// TestVectorsOverLoopback is TestVectors over real connections, without delays
// and so without the vectors that are about real ones.
func TestVectorsOverLoopback(t *testing.T) {
	inBothBehaviours(t, func(t *testing.T) {
		eachVector(t, func(t *testing.T, v *vector, revision string) {
			for _, s := range v.Steps {
				if ms, _ := strconv.ParseInt(s.Response.Headers["x-amz-retry-after"], 10, 64); s.Response.Code == never || ms > 0 {
					t.Skip("would really wait; TestVectors replays it in virtual time")
				}
			}
			r, b := v.retryer(revision, 0)
			service := &replay{T: t, steps: v.Steps, b: b}
			server := httptest.NewServer(service)
			defer server.Close()
			service.run(v.operation(r, via(server)))
		})
	})
}

// via returns a client all of whose requests go to server.
func via(server *httptest.Server) *http.Client {
	proxy := must(url.Parse(server.URL))
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
}

// TestConcurrentVectors makes the calls of each case at once. Their order is
// open, the sum is not.
func TestConcurrentVectors(t *testing.T) {
	var facts struct {
		Cases []struct {
			vector

			Threads [][]int
			Quota   float64 `json:"expect_final_quota"`
		}
	}
	vectors(t, conformance+"aws_standard_2_1_concurrent.json", &facts)
	if len(facts.Cases) == 0 {
		t.Fatal("no cases")
	}
	inBothBehaviours(t, func(t *testing.T) {
		for _, c := range facts.Cases {
			synctest.Test(t, func(t *testing.T) {
				r, b := c.retryer("2.1", 1)
				var wg sync.WaitGroup
				for _, thread := range c.Threads {
					next := 0
					call := c.operation(r, serve(t, func(w http.ResponseWriter, _ *http.Request) {
						next++
						answer(w, thread[next-1], "")
					}))
					wg.Go(func() {
						if err := call(t.Context()); err != nil || next != len(thread) {
							t.Errorf("%s: %v after %d of %d attempts", c.Name, err, next, len(thread))
						}
					})
				}
				wg.Wait()
				if got := b.Stats(time.Now()).Tokens; got != c.Quota {
					t.Errorf("%s: %v tokens left, want %v", c.Name, got, c.Quota)
				}
			})
		}
	})
}
