package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// every returns n times, d apart.
func every(d time.Duration, n int) []arrival {
	calls := make([]arrival, n)
	for i := range calls {
		calls[i].at = time.Duration(i) * d
	}
	return calls
}

func outcomes(records []record) map[outcome]int {
	m := map[outcome]int{}
	for i := range records {
		m[records[i].outcome]++
	}
	return m
}

// An open loop sends on time whether or not earlier calls were answered.
func TestGeneratorIsOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := caller(func(context.Context, time.Time) (int, error) {
			time.Sleep(300 * ms)
			return http.StatusOK, nil
		})
		records := newGenerator([]caller{slow}, 100*ms, 400*ms, every(10*ms, 100)).run(t.Context(), time.Now())
		for i := range records {
			r := &records[i]
			if r.sent != r.at || r.latency() != 300*ms || r.outcome != late {
				t.Fatalf("call %d: %+v", i, *r)
			}
		}
	})
}

// Latency counts from the intended send, and what cannot be sent before its
// deadline is dropped.
func TestGeneratorThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := caller(func(context.Context, time.Time) (int, error) { return http.StatusOK, nil })
		g := newGenerator([]caller{quick}, 100*ms, 400*ms, every(10*ms, 21))
		records := g.run(t.Context(), time.Now().Add(-200*ms)) // it begins 200 ms late
		for i := range records {
			r, behind := &records[i], 200*ms-time.Duration(i)*10*ms
			if r.sent-r.at != behind {
				t.Fatalf("call %d was sent %v late, want %v", i, r.sent-r.at, behind)
			}
			if dropped := r.outcome == dropped; dropped != (behind > 100*ms) {
				t.Errorf("call %d, %v late: dropped is %v", i, behind, dropped)
			}
			if r.outcome == good && r.latency() != behind {
				t.Errorf("call %d, %v late: latency %v", i, behind, r.latency())
			}
		}
	})
}

func TestGeneratorBoundsOpenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := caller(func(ctx context.Context, _ time.Time) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		const extra = 7
		start := time.Now()
		records := newGenerator([]caller{stuck}, 100*ms, 400*ms, every(0, maxOpenCalls+extra)).run(t.Context(), start)
		if got := outcomes(records); got[dropped] != extra || got[unfinished] != maxOpenCalls {
			t.Errorf("%v, want %d dropped and %d unfinished", got, extra, maxOpenCalls)
		}
		if took, most := time.Since(start), 400*ms+time.Second; took > most {
			t.Errorf("took %v to give up, want at most %v", took, most)
		}
	})
}

func TestGeneratorStopsWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 95*ms)
		defer cancel()
		slow := caller(func(ctx context.Context, _ time.Time) (int, error) {
			select {
			case <-time.After(30 * ms):
				return http.StatusOK, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		start := time.Now()
		records := newGenerator([]caller{slow}, 100*ms, 400*ms, every(10*ms, 1000)).run(ctx, start)
		if got := outcomes(records); len(records) != 10 || got[good] != 7 || got[unfinished] != 3 {
			t.Errorf("%d calls, %v; want 7 good ones and 3 unfinished", len(records), got)
		}
		if took := time.Since(start); took != 95*ms {
			t.Errorf("stopped after %v, want 95ms", took)
		}
	})
}

func TestClassify(t *testing.T) {
	wrapped := func(err error) error { return &url.Error{Op: "Get", URL: "http://127.0.0.1/", Err: err} }
	for _, row := range []struct {
		name   string
		status int
		err    error
		took   time.Duration
		want   outcome
	}{
		{"in time", 200, nil, 100 * ms, good},
		{"no content", 204, nil, ms, good},
		{"too late", 200, nil, 101 * ms, late},
		{"redirect", 304, nil, ms, failed},
		{"not found", 404, nil, ms, failed},
		{"internal error", 500, nil, ms, failed},
		{"overloaded", 503, nil, ms, rejectedByBackend},
		{"over quota", 429, nil, 101 * ms, rejectedByBackend},
		{"deadline", 0, wrapped(context.DeadlineExceeded), 100 * ms, timedOut},
		{"connection", 0, wrapped(errors.New("reset")), ms, failed},
		{"throttled", 0, wrapped(&spillway.RejectedError{Policy: "throttle"}), ms, rejectedThrottle},
		{"too many in flight", 0, wrapped(fmt.Errorf("attempt 1: %w", &spillway.RejectedError{Policy: "inflight"})), ms, rejectedInflight},
	} {
		g := &generator{deadline: 100 * ms}
		r := &record{arrival: arrival{at: time.Second}, sent: time.Second, done: time.Second + row.took}
		if got := g.classify(t.Context(), r, row.status, row.err); got != row.want {
			t.Errorf("%s: outcome %d, want %d", row.name, got, row.want)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	g := &generator{deadline: 100 * ms}
	if got := g.classify(stopped, &record{}, 0, wrapped(context.Canceled)); got != unfinished {
		t.Errorf("interrupted: outcome %d, want %d", got, unfinished)
	}
}
