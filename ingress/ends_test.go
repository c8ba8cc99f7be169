package ingress

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/ratelimit"
)

// ends is an EndObserver.
type ends struct {
	log

	ended log
}

func (e *ends) ObserveEnd(x spillway.Event) { e.ended.Observe(x) }

// TestEnds: each request has one end, whatever the modes are, and whatever it ends with.
func TestEnds(t *testing.T) {
	serve := func(o spillway.Outcome) func(*Server) {
		return func(s *Server) {
			if p, r := enter(s, spillway.Call{}); !r.Rejected() {
				p.Done(o)
				p.Done(o)
			}
		}
	}
	early := func(s *Server) { s.Reject(spillway.Call{Customer: "a"}, ratelimit.Caller{}) }
	full := Config{RateLimit: ratelimit.Config{Rate: 1. / 3600, BurstSeconds: 3600}}
	observed := full
	observed.RateLimitMode, observed.ShedMode = spillway.ModeObserve, spillway.ModeObserve
	off := Config{ShedMode: spillway.ModeOff}
	for name, row := range map[string]struct {
		config Config
		ask    func(*Server)
		want   string
	}{
		"served":           {Config{}, serve(spillway.OutcomeServed), " served"},
		"failed":           {Config{}, serve(spillway.OutcomeFailed), " failed"},
		"left":             {Config{}, serve(spillway.OutcomeAbandoned), " abandoned"},
		"all gates off":    {off, serve(spillway.OutcomeTimedOut), " timed out"},
		"rejected":         {full, serve(spillway.OutcomeServed), "ratelimit rejected"},
		"rejected early":   {full, early, "ratelimit rejected"},
		"not yet rejected": {Config{}, early, ""},
		"would be":         {observed, serve(spillway.OutcomeServed), " served"},
	} {
		t.Run(name, func(t *testing.T) {
			var o ends
			row.config.Observer = &o
			s := must(t, row.config)
			if row.config.RateLimit.Rate > 0 { // its burst is one request
				_, _ = enter(s, spillway.Call{})
				o.ended.take()
			}
			row.ask(s)
			if got := o.ended.take(); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// TestEndOfWaiting: a client that leaves the queue of the shedder ends there.
func TestEndOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o ends
		s := must(t, Config{MaxInFlight: 1, Observer: &o})
		p, _ := enter(s, spillway.Call{})
		ctx, leave := context.WithTimeout(t.Context(), time.Hour)
		go func() {
			time.Sleep(10 * time.Millisecond)
			leave()
		}()
		if _, r := s.Enter(ctx, spillway.Call{}, ratelimit.Caller{}); r.Outcome != spillway.OutcomeAbandoned {
			t.Fatalf("%+v", r)
		}
		if got := o.ended.take(); got != "inflight abandoned" {
			t.Errorf("got %q", got)
		}
		p.Done(spillway.OutcomeServed)
		if got := o.ended.take(); got != " served" {
			t.Errorf("got %q", got)
		}
	})
}

// quietEnds counts nothing.
type quietEnds struct{ spillway.ObserverFunc }

func (quietEnds) ObserveEnd(spillway.Event) {}

func TestEndsAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := must(t, Config{Observer: quietEnds{func(spillway.Event) {}}})
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := enter(s, spillway.Call{})
		p.Done(spillway.OutcomeServed)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestModesInStats: a gate without a limit is off, whatever its mode is.
func TestModesInStats(t *testing.T) {
	s := must(t, Config{MaxInFlight: 7, InFlightMode: spillway.ModeObserve})
	want := Modes{RateLimit: spillway.ModeOff, Quota: spillway.ModeOff, InFlight: spillway.ModeObserve, Shed: spillway.ModeEnforce}
	if got := s.Stats(time.Now()).Modes; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
