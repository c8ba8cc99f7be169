package spillslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

type idKey struct{}

func logger(w *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func observer(t testing.TB, c Config) *Observer {
	t.Helper()
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// rejected returns an event as the shedder's.
func rejected(at time.Time) spillway.Event {
	e := spillway.Rejection(&spillway.RejectedError{
		Policy: "shed", Reason: spillway.ReasonQueueFull, Level: 12, Limit: 10, Unit: "requests waiting", RetryAfter: 2 * time.Second,
	})
	e.Time, e.Policy = at, "shed"
	e.Call = spillway.Call{Key: "GET /carts/{id}", Customer: "shop", Criticality: spillway.Sheddable, Attempt: 2}
	e.Context = context.WithValue(context.Background(), idKey{}, "r-17")
	return e
}

func TestLine(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: logger(&out), RequestID: func(ctx context.Context) string {
		id, _ := ctx.Value(idKey{}).(string)
		return id
	}})
	now := time.Now()
	o.Observe(rejected(now))
	observes := rejected(now)
	observes.Mode, observes.Call, observes.Context = spillway.ModeObserve, spillway.Call{}, nil
	o.Observe(observes)
	o.Observe(spillway.Event{Time: now, Policy: "retry", Outcome: spillway.OutcomeFailed, Err: &retry.Error{
		Err: errors.New("GET https://user:hunter2@db/?token=hunter2"), Why: errors.New("hunter2"), Reason: retry.ReasonBudget, Attempts: 1,
	}, Call: spillway.Call{Key: "db"}})
	for _, quiet := range []spillway.Event{
		{Policy: "shed", Outcome: spillway.OutcomeServed},
		{Policy: "retry", Outcome: spillway.OutcomeServed},
		{Policy: "retry", Outcome: spillway.OutcomeFailed, Err: errors.New("hunter2")},
		{Policy: "retry", Outcome: spillway.OutcomeAbandoned, Err: spillway.ErrRejected},
	} {
		o.Observe(quiet)
	}
	o.Observe(spillway.Event{Time: now, Policy: "hedge", Outcome: spillway.OutcomeServed, Call: spillway.Call{Key: "db"}})
	o.Observe(spillway.Event{Time: now, Policy: "hedge", Rejected: true, Call: spillway.Call{Key: "db"}})
	o.Flush()
	const want = `level=WARN msg="request rejected" policy=shed reason=queue_full route="GET /carts/{id}" customer=shop criticality=SHEDDABLE attempt=2 measured=12 limit=10 unit="requests waiting" retry_after=2s request_id=r-17 do="more requests arrive than the server can do: add capacity, or have clients send less" left_out=0
level=INFO msg="request would be rejected" policy=shed reason=queue_full criticality=CRITICAL measured=12 limit=10 unit="requests waiting" retry_after=2s do="more requests arrive than the server can do: add capacity, or have clients send less" left_out=0
level=WARN msg="call not retried" policy=retry reason=budget route=db criticality=CRITICAL do="most calls fail, so that retries would make it worse: find out why the backend fails" left_out=0
level=INFO msg="hedge not sent" policy=hedge reason=budget route=db criticality=CRITICAL do="most calls are slow, or hedges do not help, so they would only add load: find out why the backend is slow" left_out=0
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestJSON: no field has the name of another one, such as the level of a line.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
	o.Observe(rejected(time.Now()))
	o.Flush()
	d := json.NewDecoder(&out)
	seen := make(map[string]bool)
	for n := 0; ; n++ {
		word, err := d.Token()
		if err != nil {
			break
		}
		name, ok := word.(string)
		if !ok || n%2 == 0 {
			continue // a value, or a brace
		}
		if seen[name] {
			t.Errorf("two fields %q", name)
		}
		seen[name] = true
	}
	if !seen["level"] || !seen["measured"] {
		t.Errorf("fields %v", seen)
	}
}

// TestNamesAreCutBetweenRunes: a name that is too long is still text.
func TestNamesAreCutBetweenRunes(t *testing.T) {
	for n := range 4 {
		name := strings.Repeat("x", n) + strings.Repeat("€", maxValue)
		if got := cut(name, maxValue); !utf8.ValidString(got) || len(got) > maxValue+len("…") || !strings.HasPrefix(name, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q", got)
		}
	}
}

// TestAdviceIsWhole: what to do is not cut where a name would be.
func TestAdviceIsWhole(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: logger(&out)})
	for _, n := range []int{maxAdvice, maxAdvice + 1} {
		out.Reset()
		e := spillway.Rejection(&spillway.RejectedError{Reason: spillway.ReasonMaxWait, Setting: strings.Repeat("s", maxValue+1), Advice: strings.Repeat("a", n)})
		e.Policy, e.Time = "shed", time.Now()
		e.Call.Criticality = spillway.Criticality(n % 2)
		o.Observe(e)
		o.Flush()
		line := out.String()
		if !strings.Contains(line, strings.Repeat("a", maxAdvice)) || strings.Contains(line, strings.Repeat("a", maxAdvice+1)) ||
			strings.Contains(line, strings.Repeat("s", maxValue+1)) {
			t.Errorf("%d bytes: %s", n, line)
		}
	}
}

// TestUnmeasured: the line of a rate limit has no measured level.
func TestUnmeasured(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	e := spillway.Rejection(&spillway.RejectedError{Policy: "ratelimit", Reason: spillway.ReasonRateLimit, Limit: 10, Unmeasured: true, Unit: "per second"})
	e.Time, e.Policy = time.Now(), "ratelimit"
	o.Observe(e)
	o.Flush()
	if text := out.String(); strings.Contains(text, "measured=") || !strings.Contains(text, ` limit=10 unit="per second"`) {
		t.Error(text)
	}
}

// TestSetting: a line names the limit that customers share, and says what to do about that one.
func TestSetting(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: logger(&out)})
	e := spillway.Rejection(&spillway.RejectedError{Reason: spillway.ReasonQuota, Setting: "unlisted_total", Advice: "raise it"})
	e.Policy, e.Time = "quota", time.Now()
	o.Observe(e)
	if o.Flush(); !strings.Contains(out.String(), `setting=unlisted_total do="raise it"`) {
		t.Error(out.String())
	}
}

// TestRate: in each interval one line of a kind is written, others do not count, and the
// others are counted.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := observer(t, Config{Logger: logger(&out)})
		const seconds, perSecond = 20, 100
		for range seconds * perSecond {
			o.Observe(rejected(time.Now()))
			time.Sleep(time.Second / perSecond)
		}
		quota := spillway.Rejection(&spillway.RejectedError{Reason: spillway.ReasonQuota})
		quota.Policy, quota.Time = "quota", time.Now()
		o.Observe(quota)
		o.Flush()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != seconds+1 || !strings.HasSuffix(lines[0], "left_out=0") || !strings.Contains(lines[seconds], "reason=quota") {
			t.Errorf("%d lines:\n%s", len(lines), &out)
		}
		for _, l := range lines[1:seconds] {
			if !strings.HasSuffix(l, fmt.Sprint("left_out=", perSecond-1)) {
				t.Error(l)
			}
		}
	})
}

// TestClasses: the first rejected request of a class has a line although many of another class
// were rejected in the same second.
func TestClasses(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: logger(&out)})
	now := time.Now()
	for range 1000 {
		o.Observe(rejected(now))
	}
	critical := rejected(now)
	critical.Call.Criticality = spillway.Critical
	o.Observe(critical)
	o.Flush()
	if n := strings.Count(out.String(), "\n"); n != 2 || !strings.Contains(out.String(), "criticality=CRITICAL ") {
		t.Errorf("%d lines, want one of each class:\n%s", n, &out)
	}
}

// TestClockSetBack: a clock that was set back by an hour does not silence the log.
func TestClockSetBack(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: logger(&out)})
	now := time.Now().Round(0) // the wall clock alone
	for _, at := range []time.Time{now, now.Add(-time.Hour), now.Add(-time.Hour + time.Millisecond)} {
		o.Observe(rejected(at))
	}
	o.Flush()
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, &out)
	}
}

// stuck is a handler that waits until it is released.
type stuck struct {
	slog.Handler
	released chan struct{}
	mu       sync.Mutex
	handled  int
}

func (s *stuck) Handle(context.Context, slog.Record) error {
	<-s.released
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handled++
	return nil
}

// TestSlowHandler: while a handler does not return, Observe does, the queue is bounded, and
// what was left out is counted.
func TestSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &stuck{Handler: slog.DiscardHandler, released: make(chan struct{})}
		h.Handler = slog.NewTextHandler(&bytes.Buffer{}, nil)
		o := observer(t, Config{Logger: slog.New(h), Interval: time.Millisecond})
		const events = 10 * maxQueue
		start := time.Now()
		for i := range events {
			o.Observe(rejected(start.Add(time.Duration(i) * 2 * time.Millisecond)))
			synctest.Wait() // the writer has taken the first line
		}
		o.mu.Lock()
		queued := len(o.queue)
		o.mu.Unlock()
		if queued != maxQueue {
			t.Errorf("%d lines are queued, want %d", queued, maxQueue)
		}
		close(h.released)
		o.Flush()
		if h.handled != maxQueue+1 {
			t.Errorf("%d lines were written", h.handled)
		}
		left := uint64(0)
		for i := range o.slots[0] {
			for class := range o.slots[0][i] {
				left += o.slots[0][i][class].leftOut.Load()
			}
		}
		if left != events-maxQueue-1 {
			t.Errorf("%d were left out", left)
		}
	})
}

// TestHostileValues: values of any length and content make one line of bounded length.
func TestHostileValues(t *testing.T) {
	var out bytes.Buffer
	o := observer(t, Config{Logger: logger(&out), Customer: func(s string) string { return fmt.Sprint(len(s)) }})
	e := rejected(time.Now())
	e.Call.Key, e.Call.Customer = strings.Repeat("\n\xff\x1b[2J", 1<<20), "secret"
	o.Observe(e)
	o.Flush()
	if got := out.String(); strings.Count(got, "\n") != 1 || len(got) > 2000 || strings.Contains(got, "secret") || !strings.Contains(got, "customer=6") {
		t.Errorf("%d bytes: %.2000s", len(got), got)
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{Interval: time.Microsecond}); err == nil || !strings.Contains(err.Error(), "Interval is 1µs") {
		t.Error(err)
	}
	var out bytes.Buffer
	o := observer(t, Config{Logger: logger(&out), Interval: -1})
	o.Observe(rejected(time.Now()))
	o.Flush()
	if out.Len() > 0 {
		t.Error(out.String())
	}
	quiet := observer(t, Config{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))})
	quiet.Observe(rejected(time.Now()))
	quiet.Flush()
	if out.Len() > 0 {
		t.Error(out.String())
	}
}

func TestDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	o := observer(t, Config{})
	var out bytes.Buffer
	slog.SetDefault(logger(&out)) // after New
	o.Observe(rejected(time.Now()))
	o.Flush()
	if !strings.Contains(out.String(), "request rejected") {
		t.Error(out.String())
	}
}

// TestAllocs: events without a line allocate nothing.
func TestAllocs(t *testing.T) {
	o := observer(t, Config{Logger: logger(new(bytes.Buffer))})
	now := time.Now()
	o.Observe(rejected(now))
	o.Flush()
	again, served := rejected(now), spillway.Event{Policy: "shed", Outcome: spillway.OutcomeServed, Time: now}
	if n := testing.AllocsPerRun(100, func() { o.Observe(again); o.Observe(served) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	o := observer(b, Config{Logger: slog.New(slog.DiscardHandler)})
	for name, e := range map[string]spillway.Event{
		"served":   {Policy: "shed", Outcome: spillway.OutcomeServed, Time: time.Now()},
		"rejected": rejected(time.Now()),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				o.Observe(e)
			}
		})
	}
}
