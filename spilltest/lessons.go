package spilltest

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

// Evidence is what an attempt teaches about its backend. Package fault has the rule.
type Evidence uint8

// The kinds of evidence.
const (
	NeverSent  Evidence = iota // nothing: no throttle and no budget moves
	Unanswered                 // the throttle learns from it, and it earns no budget
	Answered                   // the throttle learns from it, and it earns budget
	OverQuota                  // an answer to one customer: the throttle, which all share, learns nothing
)

// A Lesson is a call through a client that fails in a known way.
type Lesson struct {
	Name string
	// Call makes the call, and returns its error. ctx is that of the call.
	Call func(ctx context.Context) error
	Want Evidence
	// Attempts is how many attempts the call has. Zero is any number.
	Attempts int
}

// TestLessons tests an adapter for a client with the policies of package egress: that it maps the errors of its host
// library to what they teach. open returns the calls, of a new client with the configuration c each time, which it may
// add to. Each call is made again with a context that has ended.
func TestLessons(t *testing.T, open func(t *testing.T, c egress.Config) []Lesson) {
	for i, lesson := range open(t, egress.Config{}) {
		lesson.inEachContext(t, func(t *testing.T, row *Lesson, ctx context.Context) {
			l := newLearner(t)
			call := open(t, egress.Config{Observer: l, Retry: l.strategy})[i].Call
			l.start()
			if err := call(ctx); err == nil {
				t.Error("the call returns no error")
			}
			l.check(row)
			l.checkBudget(row, tokensOfCall)
		})
	}
}

// TestBudgetLessons is TestLessons for an adapter that has retries and no throttle. The bucket pays one token for each retry,
// and earned is what a call earns that was answered with a failure.
func TestBudgetLessons(t *testing.T, earned float64, open func(t *testing.T, b *budget.Bucket) []Lesson) {
	for i, lesson := range open(t, newLearner(t).bucket) {
		lesson.inEachContext(t, func(t *testing.T, row *Lesson, ctx context.Context) {
			l := newLearner(t)
			call := open(t, l.bucket)[i].Call
			l.start()
			if err := call(ctx); err == nil {
				t.Error("the call returns no error")
			}
			l.attempts = 1 + int(l.bucket.Stats(time.Now()).PaidTotal-l.paid)
			l.checkBudget(row, earned)
		})
	}
}

// inEachContext runs a test of the lesson, and of what it is with a context that has ended.
func (x Lesson) inEachContext(t *testing.T, test func(t *testing.T, row *Lesson, ctx context.Context)) {
	t.Helper()
	expired, stop := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer stop()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, row := range []struct {
		Lesson

		ctx context.Context //nolint:containedctx // of the call that the row makes
	}{
		{x, context.Background()},
		{Lesson{Name: x.Name + ", expired", Want: NeverSent}, expired},
		{Lesson{Name: x.Name + ", canceled", Want: NeverSent}, canceled},
	} {
		t.Run(row.Name, func(t *testing.T) { test(t, &row.Lesson, row.ctx) })
	}
}

// A learner sees what the policies learn.
type learner struct {
	t        *testing.T
	bucket   *budget.Bucket
	strategy retry.Strategy
	before   float64 // tokens
	paid     uint64  // retries

	mu                 sync.Mutex
	attempts, informed int
}

func newLearner(t *testing.T) *learner {
	t.Helper()
	bucket, err := budget.New(budget.Config{Capacity: 1000})
	if err != nil {
		t.Fatal(err)
	}
	bucket.Withdraw(time.Now(), "", 500)
	strategy, err := retry.NewBudgeted(retry.BudgetedConfig{Budget: bucket})
	if err != nil {
		t.Fatal(err)
	}
	return &learner{t: t, bucket: bucket, strategy: strategy}
}

// start begins again: open may have made calls.
func (l *learner) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts, l.informed, l.before = 0, 0, l.tokens()
	l.paid = l.bucket.Stats(time.Now()).PaidTotal
}

func (l *learner) tokens() float64 { return l.bucket.Stats(time.Now()).Tokens }

// Observe implements [spillway.Observer].
func (l *learner) Observe(e spillway.Event) {
	if e.Policy != "throttle" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	if e.Outcome.Informs() {
		l.informed++
	}
}

// check checks what the throttle has learnt.
func (l *learner) check(row *Lesson) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if informs := row.Want == Unanswered || row.Want == Answered; informs != (l.informed > 0) {
		l.t.Errorf("the throttle has learnt from %d of %d attempts, must learn: %v", l.informed, l.attempts, informs)
	}
}

// tokensOfCall is what a call earns by the strategy of a learner.
const tokensOfCall = 0.1

// checkBudget checks what the call has earned, and its attempts.
func (l *learner) checkBudget(row *Lesson, earns float64) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if row.Attempts > 0 && l.attempts != row.Attempts {
		l.t.Errorf("%d attempts, must be %d", l.attempts, row.Attempts)
	}
	earned := l.tokens() - l.before
	if row.Want != NeverSent {
		earned += float64(max(l.attempts-1, 0)) // the price of the retries
	}
	if row.Want != Answered {
		earns = 0
	}
	if math.Abs(earned-earns) > 1e-6 {
		l.t.Errorf("the call has earned %v tokens, must earn %v", earned, earns)
	}
}
