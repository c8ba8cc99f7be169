package concurrency

import (
	"errors"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

var t0 = time.Unix(1e9, 0)

func at(ms float64) time.Time { return t0.Add(time.Duration(ms * float64(time.Millisecond))) }

func must(tb testing.TB, c Config) *Limiter {
	tb.Helper()
	l, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func call(key string) spillway.Call { return spillway.Call{Key: key} }

func TestConfigNamesTheBadField(t *testing.T) {
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{}, ""},
		{Config{MinInFlight: 1e6, MaxInFlight: 1e6, MaxKeys: 4096}, ""},
		{Config{MaxInFlight: -1}, ""},
		{Config{MinInFlight: -1}, "concurrency: MinInFlight is -1, must be 1 to 1000000"},
		{Config{MinInFlight: 1e6 + 1}, "concurrency: MinInFlight is 1000001, must be 1 to 1000000"},
		{Config{MinInFlight: 8, MaxInFlight: 7}, "concurrency: MaxInFlight is 7, must be at least MinInFlight (8)"},
		{Config{MaxKeys: -1}, "concurrency: MaxKeys is -1, must be 1 to 4096"},
		{Config{MaxKeys: 4097}, "concurrency: MaxKeys is 4097, must be 1 to 4096"},
		{Config{MaxInFlightByKey: map[string]int{"a": 1, "b": math.MaxInt32}}, ""},
		{Config{MaxInFlightByKey: map[string]int{"a": 1, "b": 0}}, `concurrency: MaxInFlightByKey["b"] is 0, must be 1 to 2147483647`},
		{Config{MaxInFlightByKey: map[string]int{"": -1}}, `concurrency: MaxInFlightByKey[""] is -1, must be 1 to 2147483647`},
	} {
		_, err := New(row.config)
		if got := errorText(err); got != row.want {
			t.Errorf("New(%+v) = %q, want %q", row.config, got, row.want)
		}
		if got := errorText(must(t, Config{}).Update(row.config)); got != row.want {
			t.Errorf("Update(%+v) = %q, want %q", row.config, got, row.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Max and Min bound the limit of each key and of all keys together.
func TestBounds(t *testing.T) {
	l := must(t, Config{MaxInFlight: 3})
	for i := range 3 {
		if _, err := l.Admit(t0, call(strconv.Itoa(i))); err != nil {
			t.Fatalf("request %d of 3: %v", i, err)
		}
	}
	_, err := l.Admit(t0, call("other"))
	var r *spillway.RejectedError
	if !errors.As(err, &r) || !errors.Is(err, spillway.ErrRejected) || r.Policy != "concurrency" || r.Reason != spillway.ReasonMaxInFlight || r.Advice == "" {
		t.Errorf("a request beyond Max: %v", err)
	}
	if got := l.Stats(t0).RejectedTotal; got != 1 {
		t.Errorf("RejectedTotal is %d, want 1", got)
	}
	if err := l.Update(Config{MaxInFlight: 4}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Admit(t0, call("other")); err != nil {
		t.Errorf("after Max was raised: %v", err)
	}
	if err := l.Update(Config{MinInFlight: 3, MaxInFlight: 2}); err == nil {
		t.Error("Update took a Max below Min")
	}
	if got := l.Stats(t0).Shared.Limit; got != 4 {
		t.Errorf("after a failed Update the limit is %v, want 4", got)
	}
}

// A fixed limit learns nothing, and forgets what an adaptive one has learnt.
func TestFixed(t *testing.T) {
	p := newPool(t, Config{Fixed: true, MaxInFlight: 100})
	p.run(5*time.Second, 8, 800)
	if k := p.state(); k.State != Open || k.Limit != 100 || p.rejected == 0 {
		t.Errorf("%v with limit %v, %d rejected, want open with 100, some", k.State, k.Limit, p.rejected)
	}
	p = newPool(t, Config{})
	p.run(5*time.Second, 8, 800)
	if k := p.state(); k.State == Open {
		t.Fatal("no queue was found before a pool of 8")
	}
	if err := p.l.Update(Config{Fixed: true, MaxInFlight: 100}); err != nil {
		t.Fatal(err)
	}
	if k := p.state(); k.State != Open || k.Limit != 100 {
		t.Errorf("after Update: %v with limit %v, want open with 100", k.State, k.Limit)
	}
}

// A million names take no more places than Keys; what has no place shares one limit.
func TestKeysAreBounded(t *testing.T) {
	race.SkipOneGoroutine(t)
	l := must(t, Config{MaxKeys: 8})
	held := l.Enter(t0, call("held"))
	for i := range 1_000_000 {
		ticket, err := l.Admit(t0, call(strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		ticket.Settle(t0, spillway.OutcomeServed)
	}
	s := l.Stats(t0)
	if len(s.Keys) != 9 || len(l.index) != 8 || s.Keys[0].Key != Others {
		t.Fatalf("%d keys, %d names, the first %q", len(s.Keys), len(l.index), s.Keys[0].Key)
	}
	// A minute later the unused ones give their places up, but not the one in use.
	later := t0.Add(2 * time.Minute)
	for i := range 20 {
		l.Enter(later, call("new "+strconv.Itoa(i)))
	}
	s = l.Stats(later)
	if len(s.Keys) != 9 || len(l.index) != 8 || s.Keys[1].Key != "held" || s.Keys[1].InFlight+s.Keys[1].Parked != 1 {
		t.Fatalf("%+v", s.Keys)
	}
	fresh := 0
	for _, k := range s.Keys[2:] {
		if k.InFlight == 1 {
			fresh++
		}
	}
	if fresh != 7 || s.Keys[0].InFlight != 13 {
		t.Errorf("%d of 7 places taken over, %d in the rest, want 13", fresh, s.Keys[0].InFlight)
	}
	held.Settle(later, spillway.OutcomeServed)
	if working, parked := l.Working(); working != 20 || parked != 0 {
		t.Errorf("%d working, %d parked, want 20 and 0", working, parked)
	}
}

// A key without a name, or named like the rest, is a key like any other.
func TestOddNames(t *testing.T) {
	l := must(t, Config{})
	for _, name := range []string{"", "a", "", "b", "", Others, Others, "c", ""} {
		l.Enter(t0, call(name))
	}
	s := l.Stats(t0)
	if len(s.Keys) != 6 || s.Keys[1].Key != "" || s.Keys[1].InFlight != 4 || s.Keys[0].InFlight != 0 {
		t.Errorf("%+v", s.Keys)
	}
}

// Times that go back count as the latest one.
func TestClockStepsBack(t *testing.T) {
	l := must(t, Config{})
	a := l.Enter(at(1000), call("a"))
	b := l.Enter(at(0), call("a"))
	b.Suspend(at(500))
	b.Resume(at(200))
	a.Settle(at(-5000), spillway.OutcomeServed)
	b.Settle(at(900), spillway.OutcomeServed)
	k := l.Stats(at(0)).Keys[1]
	if k.InFlight != 0 || k.Parked != 0 || k.Latency != 0 || math.IsNaN(k.Throughput) {
		t.Errorf("%+v", k)
	}
}

// A suspended request does not count, and its time is no latency. A ticket is settled
// once, suspended or not.
func TestSuspended(t *testing.T) {
	l := must(t, Config{MaxInFlight: 1, Fixed: true})
	a := l.Enter(t0, call("a"))
	a.Suspend(at(10))
	a.Suspend(at(10))
	b, err := l.Admit(at(20), call("a"))
	if err != nil {
		t.Fatalf("beside a suspended request: %v", err)
	}
	b.Settle(at(20), spillway.OutcomeAbandoned)
	b.Settle(at(20), spillway.OutcomeServed)
	a.Resume(at(30))
	if working, _ := l.Working(); working != 0 {
		t.Errorf("%d working after one of two Resume, want 0", working)
	}
	a.Resume(at(1000))
	a.Resume(at(1000))
	if working, _ := l.Working(); working != 1 {
		t.Errorf("%d working after Resume, want 1", working)
	}
	a.Settle(at(1010), spillway.OutcomeServed)
	k := l.Stats(at(1010)).Keys[1]
	if k.InFlight != 0 || k.Latency != 20*time.Millisecond {
		t.Errorf("%d in flight, latency %v, want none and 20ms", k.InFlight, k.Latency)
	}
	c := l.Enter(at(1010), call("a"))
	c.Suspend(at(1010))
	c.Settle(at(5000), spillway.OutcomeServed)
	c.Suspend(at(5000))
	c.Resume(at(5000))
	if working, parked := l.Working(); working != 0 || parked != 0 {
		t.Errorf("%d working, %d parked after a suspended ticket was settled", working, parked)
	}
}

// What is in flight for long is parked, and leaves as what it is.
func TestParked(t *testing.T) {
	l := must(t, Config{})
	var tickets []spillway.Ticket
	for range 100 {
		tickets = append(tickets, l.Enter(t0, call("a")))
	}
	for i := range 200 { // with a usual latency of 5 ms requests are parked after 1 s
		ticket := l.Enter(at(float64(20*i)), call("a"))
		ticket.Settle(at(float64(20*i+5)), spillway.OutcomeServed)
	}
	if working, parked := l.Working(); working != 0 || parked != 100 {
		t.Errorf("%d working, %d parked, want 0 and 100", working, parked)
	}
	for i := range tickets {
		tickets[i].Settle(at(5000), spillway.OutcomeServed)
	}
	k := l.Stats(at(5000)).Keys[1]
	if k.InFlight != 0 || k.Parked != 0 || k.Latency > 6*time.Millisecond {
		t.Errorf("%+v", k)
	}
}

// An idle hour parks what is in flight with the first request after it.
func TestParkedAfterAnIdleHour(t *testing.T) {
	l := must(t, Config{})
	for range 100 {
		l.Enter(t0, call("a"))
	}
	l.Enter(t0.Add(time.Hour), call("a"))
	if working, parked := l.Working(); working != 1 || parked != 100 {
		t.Errorf("%d working, %d parked, want 1 and 100", working, parked)
	}
}

// Caps of keys bound these keys only, also while they are streams that last for long.
func TestMaxByKey(t *testing.T) {
	l := must(t, Config{MaxKeys: 1, MaxInFlightByKey: map[string]int{"streams": 2}})
	l.Enter(at(0), call("other")) // has the only place that is not reserved
	var streams []spillway.Ticket
	for i := range 4 {
		p := l.Ask(at(1), "streams")
		if want := i < 2; p.Free != want || p.Left != float64(2-min(i, 2)) {
			t.Fatalf("stream %d: %+v", i, p)
		} else if want {
			streams = append(streams, l.Enter(at(1), call("streams")))
		}
	}
	if p, q := l.Ask(at(2), "streams"), l.Ask(at(2), "quick"); p.Scope == q.Scope || !q.Free {
		t.Errorf("%+v for streams and %+v for quick calls", p, q)
	}
	if _, ok := l.Take(at(2), "streams", spillway.Critical, time.Time{}); ok {
		t.Error("Take admits more than the cap")
	}
	if _, err := l.Admit(at(2), call("streams")); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("Admit returns %v", err)
	}
	if l.Ask(at(3_600_000), "streams").Free {
		t.Error("a stream of an hour no longer counts")
	}
	streams[0].Suspend(at(3_600_001))
	if !l.Ask(at(3_600_002), "streams").Free {
		t.Error("a suspended stream counts")
	}
	streams[0].Resume(at(3_600_003))
	streams[1].Settle(at(3_600_004), spillway.OutcomeServed)
	if p := l.Ask(at(3_600_005), "streams"); !p.Free || p.Left != 1 {
		t.Errorf("%+v after the end of a stream", p)
	}
}

// A cap that was reached decides for ten seconds more, also while it has a free place.
func TestScopeOfACap(t *testing.T) {
	l := must(t, Config{MaxInFlightByKey: map[string]int{"capped": 1}})
	if p := l.Ask(at(0), "capped"); p.Scope != 0 {
		t.Errorf("scope %d before the cap is reached", p.Scope)
	}
	ticket := l.Enter(at(1), call("capped"))
	reached := l.Ask(at(2), "capped")
	ticket.Settle(at(3), spillway.OutcomeServed)
	for _, row := range []struct {
		ms   float64
		want int
	}{{4, reached.Scope}, {10_001, reached.Scope}, {10_003, 0}} {
		if p := l.Ask(at(row.ms), "capped"); reached.Scope == 0 || p.Scope != row.want || !p.Free {
			t.Errorf("%v ms: %+v, want scope %d and a free place", row.ms, p, row.want)
		}
	}
}

// The caps can be changed in use. Many other names cannot take the place of a key with a cap.
func TestUpdateOfMaxByKey(t *testing.T) {
	l := must(t, Config{MaxKeys: 2})
	for i := range 10 {
		l.Enter(at(0), call(strconv.Itoa(i)))
	}
	caps := map[string]int{"0": 1, "new": 1}
	if err := l.Update(Config{MaxKeys: 2, MaxInFlightByKey: caps}); err != nil {
		t.Fatal(err)
	}
	caps["new"] = 100 // the Limiter has a copy
	if l.Ask(at(1), "0").Free || !l.Ask(at(1), "new").Free {
		t.Error("the caps are not in effect")
	}
	l.Enter(at(1), call("new"))
	for i := range 10 {
		l.Ask(at(200_000), strconv.Itoa(100+i)) // takes the places of keys that were not used for long
	}
	if l.Ask(at(200_001), "new").Free || !l.Ask(at(200_001), "5").Free {
		t.Error("the cap of a key is lost, or another key has it")
	}
	if err := l.Update(Config{MaxKeys: 2}); err != nil || !l.Ask(at(200_002), "new").Free {
		t.Errorf("%v; the cap is still in effect", err)
	}
}

// TestConcurrentUse: whatever happens at once, nothing is in flight afterwards.
func TestConcurrentUse(t *testing.T) {
	l := must(t, Config{MaxKeys: 4})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 1000 {
				now := t0.Add(time.Duration(i) * time.Millisecond)
				ticket, err := l.Admit(now, call(strconv.Itoa((worker+i)%6)))
				if err != nil {
					continue
				}
				if i%3 == 0 {
					ticket.Suspend(now)
					ticket.Resume(now)
				}
				ticket.Settle(now, spillway.OutcomeServed)
				if i%100 == worker {
					l.Beat(now, false)
					l.Stats(now)
					if err := l.Update(Config{MaxKeys: 4, MinInFlight: 1 + worker}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if working, parked := l.Working(); working != 0 || parked != 0 {
		t.Errorf("%d working, %d parked", working, parked)
	}
}
