package quota

import (
	"container/heap"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// TestReject: Reject says what Admit would, and charges nothing.
func TestReject(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 1}, BurstSeconds: 2})
	c := callOf("a", critical)
	for range 10 {
		if err := q.Reject(t0, c); err != nil {
			t.Fatalf("Reject while nothing is used: %v", err)
		}
	}
	if s := statsOf(t, q, 0, "a"); s.Debt != 0 || s.Classes[spillway.Critical.Index()] != (ClassStats{}) {
		t.Errorf("asking is charged or counted: %+v", s)
	}
	admitted := 0
	for q.Reject(t0, c) == nil {
		if _, err := q.Admit(t0, c); err != nil {
			t.Fatalf("Admit: %v, and Reject did not", err)
		}
		admitted++
	}
	if admitted == 0 || admitted > 2 {
		t.Errorf("%d calls at once at 1 per second", admitted)
	}
	err := q.Reject(t0, c)
	if e, ok := errors.AsType[*spillway.RejectedError](err); !ok || e.Reason != spillway.ReasonQuota || e.RetryAfter <= 0 {
		t.Errorf("Reject: %v", err)
	}
	if got, want := statsOf(t, q, 0, "a").Classes[spillway.Critical.Index()], (ClassStats{AdmittedTotal: uint64(admitted), RejectedTotal: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := q.Reject(t0, callOf("b", critical)); err != nil {
		t.Errorf("another customer: %v", err)
	}
}

// TestPace: a rejection says what the customer asks for per second, and what it may use: after a
// burst, during constant demand, and when the demand has changed.
func TestPace(t *testing.T) {
	for name, row := range map[string]struct {
		class    int
		rate     float64
		calls    func(send func(at time.Duration, n int))
		from, to float64 // level of the last rejection
	}{
		"nine at once at 10 per second": {critical, 10, func(send func(time.Duration, int)) { send(0, 9) }, 12, 12},
		"50 per second at 10": {critical, 10, func(send func(time.Duration, int)) {
			for i := range 300 {
				send(time.Duration(i)*20*ms, 1)
			}
		}, 45, 55},
		"3 per second at 1": {critical, 1, func(send func(time.Duration, int)) {
			for i := range 60 {
				send(time.Duration(i)*333*ms, 1)
			}
		}, 2.7, 3.3},
		"20 per second after 200": {criticalPlus, 10, func(send func(time.Duration, int)) {
			for i := range 2000 {
				send(time.Duration(i)*5*ms, 1)
			}
			for i := range 600 {
				send(10*time.Second+time.Duration(i)*50*ms, 1)
			}
		}, 18, 32},
		"once more than the quota after a pause": {critical, 10, func(send func(time.Duration, int)) {
			send(0, 1000)
			send(time.Minute, 9)
		}, 12, 12},
	} {
		q := must(t, Config{Allocator: fixed{Rate: row.rate}})
		var last *spillway.RejectedError
		row.calls(func(at time.Duration, n int) {
			for range n {
				if _, err := q.Admit(t0.Add(at), callOf("a", row.class)); err != nil {
					last, _ = errors.AsType[*spillway.RejectedError](err)
				}
			}
		})
		if last == nil || last.Level < row.from || last.Level > row.to || last.Limit != row.rate || last.Unit != "per second" {
			t.Errorf("%s: %+v, want a level of %v to %v", name, last, row.from, row.to)
		}
	}
}

// TestFirstBurst: what an idle customer may send at once, as docs/quota-fleet.md says.
func TestFirstBurst(t *testing.T) {
	for rate, row := range map[float64][spillway.Criticalities]int{
		1: {1, 1, 1, 1}, 2: {1, 1, 2, 2}, 10: {3, 5, 8, 10}, 100: {25, 50, 75, 100},
	} {
		for class, want := range row {
			q, n := must(t, Config{Allocator: fixed{Rate: rate}}), 0
			for admit(q, 0, "a", class) {
				n++
			}
			if n != want {
				t.Errorf("%v per second, class %d: %d at once, want %d", rate, class, n, want)
			}
		}
	}
	for n := 1; n < 50; n++ { // a larger burst, as the document says
		q := must(t, Config{Allocator: fixed{Rate: 5}, BurstSeconds: 4.0 / 3 * float64(n) / 5})
		for i := range n {
			if !admit(q, 0, "a", critical) {
				t.Fatalf("call %d of %d at once is rejected", i+1, n)
			}
		}
	}
}

// TestPaceAboveRate: who is rejected for the use of its bucket has asked for more than its rate.
func TestPaceAboveRate(t *testing.T) {
	for class := range spillway.Criticalities {
		for n := 1; n < 200; n += 7 {
			q := must(t, Config{Allocator: fixed{Rate: float64(n)}})
			for i := range 3 * n {
				_, err := q.Admit(t0.Add(time.Duration(i)*time.Second/time.Duration(2*n)), callOf("a", class))
				if e, ok := errors.AsType[*spillway.RejectedError](err); ok && e.Level < e.Limit {
					t.Fatalf("class %d, %d per second, call %d: %v", class, n, i, e)
				}
			}
		}
	}
}

// TestPartOfARate: a rejection in one of several tasks does not take its part for the whole limit.
func TestPartOfARate(t *testing.T) {
	q := must(t, Config{Allocator: &recorder{grant: Grant{Rate: 2, Part: true}}})
	var err error
	for err == nil {
		_, err = q.Admit(t0, callOf("a", critical))
	}
	if !strings.Contains(err.Error(), " of 2 per second in this task") {
		t.Error(err)
	}
}

// TestRejectionsAreShared: many rejections of one customer are a few errors, of which it remembers few, so that
// a flood of calls makes no garbage, whatever their waits.
func TestRejectionsAreShared(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 10}})
	different := make(map[error]bool)
	for i := range 100_000 { // in 10 s
		if _, err := q.Admit(t0.Add(time.Duration(i)*100*time.Microsecond), callOf("a", i%4)); err != nil {
			different[err] = true
		}
	}
	if len(different) > 10*4*14 {
		t.Errorf("%d errors for 100000 calls in 10 s", len(different))
	}
	c := &customer{rate: 1}
	for i := range 1000 {
		wait := time.Millisecond << (i % mostHint)
		if c.rejections != nil {
			c.rejections[critical].turn = 0
		}
		if e, ok := errors.AsType[*spillway.RejectedError](c.rejection(0, time.Second, critical, wait, 1)); !ok || e.RetryAfter != wait {
			t.Fatalf("a wait of %v: %v", wait, e)
		}
	}
	if n := len(c.rejections[critical].all); n > mostErrors {
		t.Errorf("%d errors are remembered", n)
	}
}

// TestTurns: calls that are rejected together come back one after another, so that few are rejected
// again: with a hint of the next token for all of them, each is rejected 5 to 38 times.
func TestTurns(t *testing.T) {
	const rate, burst, every, bursts = 100, 160, 2 * time.Second, 20
	jitter := rand.New(rand.NewPCG(1, 2))
	for class := range spillway.Criticalities {
		q := must(t, Config{Allocator: fixed{Rate: rate}})
		var back waiting
		for i := range bursts * burst { // 80 per second on average
			heap.Push(&back, time.Duration(i/burst)*every+time.Duration(i%burst)*ms)
		}
		calls := 0
		var at time.Duration
		for ; len(back) > 0; calls++ {
			at = heap.Pop(&back).(time.Duration)
			_, err := q.Admit(t0.Add(at), callOf("a", class))
			if e, ok := errors.AsType[*spillway.RejectedError](err); ok { // a server adds up to as much again
				heap.Push(&back, at+time.Duration(float64(e.RetryAfter)*(1+jitter.Float64())))
			}
		}
		if again := float64(calls)/(bursts*burst) - 1; again > 0.9 || at > bursts*every+2*time.Second {
			t.Errorf("class %d: %.2f rejections for each call, the last is served after %v", class, again, at)
		}
	}
}

// waiting is a heap of times.
type waiting []time.Duration

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i] < w[j] }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(x any)        { *w = append(*w, x.(time.Duration)) }
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}
