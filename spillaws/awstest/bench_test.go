package awstest

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

// A loop is the SDK's retry loop with one way of deciding about retries.
type loop struct {
	name    string
	retryer aws.Retryer
	wrap    []func(*middleware.Stack) error
}

// loops are what is compared with the first of them. The second is the same, and shows
// how far like things differ here. None waits for a retry, and none runs out of tokens.
func loops() []loop {
	ours := must(spillaws.New(spillaws.Config{MaxAttempts: 3, Strategy: must(retry.NewAWSStandard(retry.AWSStandardConfig{
		Rand: func() float64 { return 0 }, Prices: retry.Prices{Retry: 1, Overload: 1, Timeout: 1},
	}))}))
	standard := func(o *sdkretry.StandardOptions) {
		o.RetryCost, o.RetryTimeoutCost, o.ThrottlingRetryCost = 1, 1, 1
		o.Backoff = sdkretry.NewExponentialJitterBackoff(0)
	}
	limited := func(o *sdkretry.StandardOptions) {
		standard(o)
		o.RateLimiter = must(spillaws.NewRateLimiter(bucket(500, 500), ""))
	}
	return []loop{
		{name: "sdk", retryer: sdkretry.NewStandard(standard)},
		{name: "noise", retryer: sdkretry.NewStandard(standard)},
		{name: "sdk-with-our-budget", retryer: sdkretry.NewStandard(limited)},
		{name: "spillway", retryer: ours, wrap: []func(*middleware.Stack) error{ours.Wrap}},
		{name: "none", retryer: aws.NopRetryer{}}, // does not retry
	}
}

// stack is a stack with nothing in it but l.
func (l loop) stack() *middleware.Stack {
	s := middleware.NewStack("GetItem", smithyhttp.NewStackRequest)
	s.Finalize.Add(sdkretry.NewAttemptMiddleware(l.retryer, smithyhttp.RequestCloner), middleware.After)
	for _, f := range l.wrap {
		f(s)
	}
	return s
}

// service is a service that fails the first attempts of a call.
type service struct{ failures, n int }

func (s *service) Handle(context.Context, any) (any, middleware.Metadata, error) {
	s.n++
	if s.n <= s.failures {
		return nil, middleware.Metadata{}, unavailable
	}
	return "ok", middleware.Metadata{}, nil
}

var unavailable error = &smithyhttp.ResponseError{
	Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 503, Header: http.Header{}}},
	Err:      io.ErrUnexpectedEOF,
}

// A turn is how many calls are made in one way before the next way.
const turn = 16

// compare makes calls in several ways, a turn of each and in an order that is shuffled
// for each round. A round is so short that what else the machine does is in all of its
// turns, so each way is compared with the first one in the same round. Reported are the
// median of the first one's calls, and the medians over all rounds of how much longer
// the others take, as a share of it; and the allocations of all.
func compare(b *testing.B, names []string, calls []func() error) {
	order := rand.Perm(len(calls))
	longer := make([][]float64, len(calls))
	took := make([]float64, len(calls))
	var first []float64
	for b.Loop() {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			took[i] = measure(b, calls[i])
		}
		first = append(first, took[0])
		for i := range longer {
			longer[i] = append(longer[i], 100*(took[i]/took[0]-1))
		}
	}
	b.ReportMetric(median(first), names[0]+"-p50-ns")
	for i, name := range names {
		if i > 0 {
			b.ReportMetric(median(longer[i]), name+"-p50-%")
		}
		b.ReportMetric(testing.AllocsPerRun(100, func() { calls[i]() }), name+"-allocs")
	}
}

// measure returns the median of how long the calls of a turn take.
func measure(b *testing.B, call func() error) float64 {
	var took [turn]float64
	for i := range took {
		start := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took[i] = float64(time.Since(start))
	}
	return median(took[:])
}

func median(d []float64) float64 {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkLoop is a call with everything of the SDK left out but the retry loop.
func BenchmarkLoop(b *testing.B) {
	for _, failures := range []int{0, 1} {
		b.Run([]string{"success", "one retry"}[failures], func(b *testing.B) {
			ctx := awsmiddleware.SetServiceID(b.Context(), "DynamoDB")
			var names []string
			var calls []func() error
			ls := loops()
			for _, l := range ls[:len(ls)-failures] { // "none" does not retry
				names = append(names, l.name)
				calls = append(calls, func() error {
					h := middleware.DecorateHandler(&service{failures: failures}, l.stack())
					_, _, err := h.Handle(ctx, nil)
					return err
				})
			}
			compare(b, names, calls)
		})
	}
}

// instant answers at once.
type instant struct{}

func (instant) Do(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2,
	}, nil
}

// BenchmarkGetItem is a whole call, short of the network and over the loopback.
func BenchmarkGetItem(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "") }))
	b.Cleanup(server.Close)
	for name, to := range map[string]aws.HTTPClient{"instant": instant{}, "loopback": server.Client()} {
		b.Run(name, func(b *testing.B) {
			var names []string
			var calls []func() error
			for _, l := range loops() {
				client := dynamodb.New(databaseOptions(to), func(o *dynamodb.Options) {
					o.BaseEndpoint = &server.URL
					o.Retryer = l.retryer
					o.APIOptions = append(o.APIOptions, l.wrap...)
				})
				names = append(names, l.name)
				calls = append(calls, func() error { return get(b.Context(), client) })
			}
			compare(b, names, calls)
		})
	}
}
