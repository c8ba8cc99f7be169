package spillrlqs

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

// An envoy does what the rate_limit_quota filter of a stock Envoy does.
type envoy struct {
	t       *testing.T
	conn    rlqs.RateLimitQuotaService_StreamRateLimitQuotasClient
	rand    *rand.Rand
	refills bool // as before 1.33: each assignment begins with a full bucket
	every   time.Duration

	mu        sync.Mutex
	buckets   map[string]*envoyBucket
	abandoned int
	expired   int // calls without a valid assignment, after the first one
	sendMu    sync.Mutex
}

type envoyBucket struct {
	id              map[string]string
	allowed, denied uint64
	blanket         *envoytype.RateLimitStrategy_BlanketRule_
	tokens          *envoytype.TokenBucket
	rate, has       float64
	last, until     time.Time
	told            time.Time // of the last report
}

// newEnvoy opens a stream that ends with ctx.
func newEnvoy(t *testing.T, ctx context.Context, cc *grpc.ClientConn, seed uint64) *envoy {
	t.Helper()
	conn, err := rlqs.NewRateLimitQuotaServiceClient(cc).StreamRateLimitQuotas(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e := &envoy{t: t, conn: conn, rand: rand.New(rand.NewPCG(seed, 1)), every: time.Second, buckets: map[string]*envoyBucket{}}
	go e.listen()
	return e
}

func (e *envoy) listen() {
	for {
		m, err := e.conn.Recv()
		if err != nil {
			return
		}
		if err := m.ValidateAll(); err != nil {
			e.t.Errorf("invalid response: %v", err)
		}
		e.mu.Lock()
		for _, a := range m.GetBucketAction() {
			e.take(time.Now(), a)
		}
		e.mu.Unlock()
	}
}

// take applies an action as Envoy does: whole seconds only, and a token bucket is new only
// if one of the fields differs that it compares.
func (e *envoy) take(now time.Time, a *rlqs.RateLimitQuotaResponse_BucketAction) {
	key := fmt.Sprint(a.GetBucketId().GetBucket())
	b := e.buckets[key]
	if b == nil {
		return
	}
	if a.GetAbandonAction() != nil {
		delete(e.buckets, key)
		e.abandoned++
		return
	}
	q := a.GetQuotaAssignmentAction()
	b.until = now.Add(time.Duration(q.GetAssignmentTimeToLive().GetSeconds()) * time.Second)
	b.blanket, _ = q.GetRateLimitStrategy().GetStrategy().(*envoytype.RateLimitStrategy_BlanketRule_)
	next := q.GetRateLimitStrategy().GetTokenBucket()
	if next == nil {
		b.tokens = nil
		return
	}
	if b.tokens != nil && b.tokens.GetMaxTokens() == next.GetMaxTokens() && b.tokens.GetTokensPerFill().GetValue() == next.GetTokensPerFill().GetValue() &&
		b.tokens.GetFillInterval().GetNanos() == next.GetFillInterval().GetNanos() {
		return
	}
	full := 1.
	if b.tokens != nil && !e.refills {
		full = b.has / float64(b.tokens.GetMaxTokens())
	}
	b.tokens, b.last = next, now
	b.has = full * float64(next.GetMaxTokens())
	b.rate = float64(next.GetTokensPerFill().GetValue()) / float64(next.GetFillInterval().GetSeconds()) // +Inf below a second
}

// ask is one request of a downstream client.
func (e *envoy) ask(now time.Time, id map[string]string) (ok bool) {
	e.mu.Lock()
	key := fmt.Sprint(id)
	b := e.buckets[key]
	if b == nil { // allowed, and reported at once
		b = &envoyBucket{id: id, allowed: 1, told: now}
		e.buckets[key] = b
		e.mu.Unlock()
		e.report(now, b)
		return true
	}
	defer e.mu.Unlock()
	switch {
	case b.until.IsZero():
		ok = true
	case now.After(b.until):
		e.expired++
		ok = true
	case b.blanket != nil:
		ok = b.blanket.BlanketRule == envoytype.RateLimitStrategy_ALLOW_ALL
	case b.tokens != nil:
		b.has = min(float64(b.tokens.GetMaxTokens()), b.has+b.rate*now.Sub(b.last).Seconds())
		b.last = now
		if ok = b.has >= 1; ok {
			b.has--
		}
	}
	if ok {
		b.allowed++
	} else {
		b.denied++
	}
	return ok
}

// report sends the use of one bucket, or of all.
func (e *envoy) report(now time.Time, only *envoyBucket) {
	e.mu.Lock()
	m := &rlqs.RateLimitQuotaUsageReports{Domain: "envoy"}
	for _, b := range e.buckets {
		if only == nil || b == only {
			m.BucketQuotaUsages = append(m.BucketQuotaUsages, &rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage{
				BucketId:           &rlqs.BucketId{Bucket: b.id},
				TimeElapsed:        durationpb.New(now.Sub(b.told).Truncate(time.Second)),
				NumRequestsAllowed: b.allowed, NumRequestsDenied: b.denied,
			})
			b.allowed, b.denied, b.told = 0, 0, now
		}
	}
	e.mu.Unlock()
	e.sendMu.Lock()
	defer e.sendMu.Unlock()
	_ = e.conn.Send(m)
}

// A flow is requests that arrive independently of one another.
type flow struct {
	customer, class string
	rate            float64
}

// A tally counts requests that were allowed, by the second and the class.
type tally struct {
	mu    sync.Mutex
	began time.Time
	cells map[int]map[string]*[2]float64 // allowed, denied
}

func (y *tally) add(now time.Time, class string, ok bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	k := int(now.Sub(y.began) / time.Second)
	if y.cells[k] == nil {
		y.cells[k] = map[string]*[2]float64{}
	}
	c := y.cells[k][class]
	if c == nil {
		c = new([2]float64)
		y.cells[k][class] = c
	}
	if ok {
		c[0]++
	} else {
		c[1]++
	}
}

// sum returns what was allowed and denied per second from one second to another; of all
// classes for "".
func (y *tally) sum(a, b int, class string) (allowed, denied float64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for k := a; k < b; k++ {
		for name, c := range y.cells[k] {
			if class == "" || name == class {
				allowed += c[0] / float64(b-a)
				denied += c[1] / float64(b-a)
			}
		}
	}
	return allowed, denied
}

// drive has clients send requests through the envoy for some time.
func (e *envoy) drive(y *tally, d time.Duration, flows func(at time.Duration) []flow) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last := y.began
	reported := y.began.Add(-time.Duration(e.rand.Int64N(int64(e.every))))
	for time.Since(y.began) < d {
		<-tick.C
		now := time.Now()
		for _, f := range flows(now.Sub(y.began)) {
			for range poisson(e.rand, f.rate*now.Sub(last).Seconds()) {
				y.add(now, f.class, e.ask(now, map[string]string{"customer": f.customer, "criticality": f.class}))
			}
		}
		last = now
		if now.Sub(reported) >= e.every {
			e.report(now, nil)
			reported = now
		}
	}
}

func poisson(r *rand.Rand, l float64) (n int) {
	for p := r.Float64(); p > math.Exp(-l); n++ {
		p *= r.Float64()
	}
	return n
}
