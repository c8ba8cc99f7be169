package inflight

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

var _ interface {
	spillway.Gate
	spillway.Settler
} = (*Limiter)(nil)

// tooMany is above the highest limit, where an int can be.
var tooMany = int(int64(math.MaxInt32) + int64(strconv.IntSize/64))

var t0 = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func mustNew(t testing.TB, maxRequests int) *Limiter {
	t.Helper()
	l, err := New(Config{MaxInFlight: maxRequests})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// acquire calls TryAcquire n times and returns how many succeeded.
func acquire(l *Limiter, n uint32) (admitted int) {
	for range n {
		if l.TryAcquire() {
			admitted++
		}
	}
	return admitted
}

func TestConfig(t *testing.T) {
	for _, row := range []struct {
		maxRequests int
		want        int
		err         string
	}{
		{0, DefaultMaxInFlight, ""},
		{1, 1, ""},
		{math.MaxInt32, math.MaxInt32, ""},
		{-1, math.MaxInt32, ""},
		{math.MinInt, math.MaxInt32, ""},
		{tooMany, 0, "MaxInFlight is 2147483648, must be at most 2147483647"},
	} {
		if strconv.IntSize == 32 && row.err != "" {
			continue // every int is a valid limit
		}
		l, err := New(Config{MaxInFlight: row.maxRequests})
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("MaxInFlight %d: error %v, want one with %q", row.maxRequests, err, row.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("MaxInFlight %d: %v", row.maxRequests, err)
			continue
		}
		if got := l.Stats(time.Time{}).MaxInFlight; got != row.want {
			t.Errorf("MaxInFlight %d: limit %d, want %d", row.maxRequests, got, row.want)
		}
	}
}

// TestA32 replays what A32, its discussion and the tests of its
// implementations ask for.
func TestA32(t *testing.T) {
	const set, ask, end = "set", "ask", "end"
	type step struct {
		do string
		n  uint32
		// after the step:
		admitted, inFlight int
		drops              uint64
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"the default, and no more", []step{
			{ask, DefaultMaxInFlight, DefaultMaxInFlight, DefaultMaxInFlight, 0}, {ask, 1, 0, DefaultMaxInFlight, 1},
			{end, 1, 0, DefaultMaxInFlight - 1, 1}, {ask, 2, 1, DefaultMaxInFlight, 2}}},
		{"32 of 64", []step{
			{set, 32, 0, 0, 0}, {ask, 64, 32, 32, 32}}},
		{"raised from 16 to 17", []step{
			{set, 16, 0, 0, 0}, {ask, 17, 16, 16, 1}, {set, 17, 0, 16, 1}, {ask, 2, 1, 17, 2}}},
		{"lowered to what is in flight", []step{
			{set, 16, 0, 0, 0}, {ask, 15, 15, 15, 0}, {set, 15, 0, 15, 0}, {ask, 1, 0, 15, 1}}},
		{"105 in flight and lowered to 100", []step{
			{set, 200, 0, 0, 0}, {ask, 105, 105, 105, 0}, {set, 100, 0, 105, 0}, {ask, 1, 0, 105, 1},
			{end, 5, 0, 100, 1}, {ask, 1, 0, 100, 2}, {end, 1, 0, 99, 2}, {ask, 2, 1, 100, 3}}},
		{"3 open and 100 further", []step{
			{set, 3, 0, 0, 0}, {ask, 3, 3, 3, 0}, {ask, 100, 0, 3, 100}}},
		{"0 rejects everything", []step{
			{ask, 2, 2, 2, 0}, {set, 0, 0, 2, 0}, {ask, 3, 0, 2, 3}, {end, 2, 0, 0, 3}, {ask, 1, 0, 0, 4}, {set, 1, 0, 0, 4}, {ask, 1, 1, 1, 4}}},
		{"the highest value turns it off", []step{
			{set, math.MaxUint32, 0, 0, 0}, {ask, 5000, 5000, 5000, 0}, {set, 1, 0, 5000, 0}, {end, 4999, 0, 1, 0}, {ask, 1, 0, 1, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := mustNew(t, 0)
			for i, s := range test.steps {
				admitted := 0
				switch s.do {
				case set:
					l.SetMaxInFlight(s.n)
				case ask:
					admitted = acquire(l, s.n)
				case end:
					for range s.n {
						l.Release()
					}
				}
				got := l.Stats(time.Time{})
				if admitted != s.admitted || got.InFlight != s.inFlight || got.RejectedTotal != s.drops || got.SurplusTotal != 0 {
					t.Fatalf("step %d (%s %d): admitted %d, %+v; want admitted %d, %d in flight, %d drops",
						i, s.do, s.n, admitted, got, s.admitted, s.inFlight, s.drops)
				}
				if full := s.inFlight >= got.MaxInFlight; l.Full() != full {
					t.Fatalf("step %d: Full is %v with %d of %d", i, !full, s.inFlight, got.MaxInFlight)
				}
			}
		})
	}
}

func TestAdmit(t *testing.T) {
	l := mustNew(t, 1)
	ticket, err := l.Admit(t0, spillway.Call{Criticality: spillway.Sheddable})
	if err != nil {
		t.Fatal(err)
	}
	if ticket.Criticality != spillway.Sheddable {
		t.Errorf("ticket %+v does not carry the call's criticality", ticket)
	}
	rejected, err := l.Admit(t0, spillway.Call{})
	if !errors.Is(err, spillway.ErrRejected) {
		t.Fatalf("second of one admitted, or wrong error: %v", err)
	}
	rejected.Settle(t0, spillway.OutcomeAbandoned) // the zero Ticket settles nothing
	if got := l.Stats(time.Time{}).InFlight; got != 1 {
		t.Fatalf("%d in flight after settling a rejection, want 1", got)
	}
	ticket.Settle(t0, spillway.OutcomeFailed)
	ticket.Settle(t0, spillway.OutcomeServed) // spent
	if got := l.Stats(time.Time{}); got.InFlight != 0 || got.SurplusTotal != 0 {
		t.Fatalf("%+v after settling twice, want nothing in flight and no surplus", got)
	}
}

func TestRejection(t *testing.T) {
	l := mustNew(t, 3)
	acquire(l, 3)
	first, second := l.Reject(), l.Reject()
	if first != second {
		t.Error("two rejections at one limit are two errors, want one made ahead of time")
	}
	e, ok := errors.AsType[*spillway.RejectedError](first)
	if !ok || e.Policy != "inflight" || e.Reason != spillway.ReasonMaxInFlight || e.Level != 3 || e.Limit != 3 || e.Advice == "" {
		t.Errorf("rejection %+v", e)
	}
	if want := "spillway: rejected locally by inflight at 3 of 3 requests in flight: "; !strings.HasPrefix(first.Error(), want) {
		t.Errorf("rejection reads %q, want %q…", first, want)
	}
	l.SetMaxInFlight(0)
	if _, err := l.Admit(t0, spillway.Call{}); err == nil || !strings.Contains(err.Error(), "MaxInFlight (xDS: max_requests) was set to 0") {
		t.Errorf("rejection at limit 0: %v", err)
	}
	if got := l.Stats(time.Time{}).RejectedTotal; got != 3 {
		t.Errorf("%d drops, want 3", got)
	}
}

func TestUpdate(t *testing.T) {
	l := mustNew(t, 5)
	acquire(l, 5)
	if tooMany > math.MaxInt32 && l.Update(Config{MaxInFlight: tooMany}) == nil {
		t.Error("Update took an impossible limit")
	}
	if got := l.Stats(time.Time{}); got.MaxInFlight != 5 || got.InFlight != 5 {
		t.Errorf("a failed Update changed the limiter to %+v", got)
	}
	if err := l.Update(Config{MaxInFlight: 6}); err != nil {
		t.Error(err)
	}
	if got := l.Stats(time.Time{}); got.MaxInFlight != 6 || got.InFlight != 5 {
		t.Errorf("after Update to 6: %+v, want 5 of 6", got)
	}
}

func TestSurplusRelease(t *testing.T) {
	for _, limit := range []uint32{0, 1, 1024, math.MaxInt32} {
		l := mustNew(t, -1)
		l.SetMaxInFlight(limit)
		l.Release()
		l.Release()
		want := Stats{MaxInFlight: int(limit), SurplusTotal: 2}
		if got := l.Stats(time.Time{}); got != want {
			t.Errorf("limit %d: %+v after two surplus releases, want %+v", limit, got, want)
		}
		if got := l.TryAcquire(); got != (limit > 0) {
			t.Errorf("limit %d: TryAcquire is %v after surplus releases", limit, got)
		}
	}
}

func TestDropsForReports(t *testing.T) {
	l := mustNew(t, 1)
	acquire(l, 4)
	if got := l.TakeRejected(); got != 3 {
		t.Fatalf("took %d drops, want 3", got)
	}
	if got := l.TakeRejected(); got != 0 {
		t.Fatalf("took %d drops again", got)
	}
	l.TryAcquire()
	l.PutBackRejected(3) // the report did not get through
	l.TryAcquire()
	if got := l.TakeRejected(); got != 5 {
		t.Errorf("took %d drops after a failed report, want 5", got)
	}
	if got := l.Stats(time.Time{}).RejectedTotal; got != 5 {
		t.Errorf("%d drops in all, want 5: reports do not count", got)
	}
}

func TestNoAllocation(t *testing.T) {
	open, full := mustNew(t, 0), mustNew(t, 1)
	full.TryAcquire()
	for name, f := range map[string]func(){
		"acquire": func() { open.TryAcquire(); open.Release() },
		"admit": func() {
			ticket, _ := open.Admit(t0, spillway.Call{})
			ticket.Settle(t0, spillway.OutcomeServed)
		},
		"drop":   func() { full.TryAcquire() },
		"reject": func() { full.Admit(t0, spillway.Call{}) },
		"peek":   func() { full.Full(); full.Reject() },
		"report": func() { full.PutBackRejected(full.TakeRejected()) },
		"stats":  func() { full.Stats(time.Time{}) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A configuration that is read again does not undo what was set at run time.
func TestConfigure(t *testing.T) {
	type step struct {
		set  bool // at run time
		n    uint32
		want int
	}
	for name, steps := range map[string][]step{
		"configured":                     {{false, 500, 500}, {false, 600, 600}, {false, 600, 600}},
		"set, and read again":            {{false, 500, 500}, {true, 800, 800}, {false, 500, 800}, {false, 500, 800}},
		"set first":                      {{true, 800, 800}, {false, 500, 800}, {false, 500, 800}},
		"set, and configured anew":       {{false, 500, 500}, {true, 800, 800}, {false, 600, 600}, {false, 600, 600}},
		"set first, and configured anew": {{true, 800, 800}, {false, 500, 800}, {false, 600, 600}},
		"zero":                           {{false, 0, 0}, {true, 7, 7}, {false, 0, 7}},
		"no limit":                       {{false, math.MaxUint32, math.MaxInt32}},
	} {
		var r Registry
		l, release := r.Share(Key{Cluster: name})
		defer release()
		if l.Configured() {
			t.Errorf("%s: configured from the start", name)
		}
		for i, s := range steps {
			if s.set {
				l.SetMaxInFlight(s.n)
			} else {
				l.Configure(s.n)
			}
			if got := l.Stats(time.Time{}).MaxInFlight; got != s.want || !l.Configured() {
				t.Errorf("%s: step %d: limit %d (configured: %t), want %d", name, i, got, l.Configured(), s.want)
			}
		}
	}
	if l := mustNew(t, 0); l.Configured() {
		t.Error("the default limit is configured")
	}
	if l := mustNew(t, 5); !l.Configured() {
		t.Error("a limit of New is not configured")
	}
}
