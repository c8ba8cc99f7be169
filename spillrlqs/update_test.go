package spillrlqs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// TestUpdate: a new limit holds for streams that are open, and for the older protocol. What Envoys report is
// counted by class and by customer.
func TestUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, cc := start(t, mail(100))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := newEnvoy(t, ctx, cc, 1)
		y := &tally{began: time.Now(), cells: map[int]map[string]*[2]float64{}}
		var done sync.WaitGroup
		done.Go(func() {
			e.drive(y, 60*time.Second, func(time.Duration) []flow { return []flow{{"mail", "SHEDDABLE", 300}, {"new", "CRITICAL", 20}} })
		})
		time.Sleep(20 * time.Second)
		if l := line(s, "new"); l.Known || l.Rate < 1e300 || l.AdmittedRate < 10 {
			t.Errorf("a customer without a limit: %+v", l)
		}
		bad := mail(100)
		bad.Fleet.Interval = time.Hour
		if _, wrong := errors.AsType[*spillway.FieldError](s.Update(bad)); !wrong {
			t.Error("an interval of an hour was accepted")
		}
		c := mail(200)
		c.Fleet.Limits.Customers["new"] = quota.Limit{Rate: 5}
		if err := s.Update(c); err != nil {
			t.Fatal(err)
		}
		done.Wait()
		if before, _ := y.sum(10, 20, "SHEDDABLE"); before < 95 || before > 105 {
			t.Errorf("%v per second were admitted of a limit of 100", before)
		}
		if after, _ := y.sum(30, 40, "SHEDDABLE"); after < 190 || after > 210 {
			t.Errorf("%v per second were admitted of the new limit of 200", after)
		}
		// What was used until all knew the limit is paid back first: at most 2·B·R, which is 50, at half of R. So the limit holds at once.
		if first, _ := y.sum(30, 40, "CRITICAL"); first < 2 || first > 6 {
			t.Errorf("%v per second were admitted while a customer with a limit of 5 pays back", first)
		}
		if after, _ := y.sum(50, 60, "CRITICAL"); after < 4 || after > 6 {
			t.Errorf("%v per second were admitted of a customer with a limit of 5 that had none", after)
		}
		check(t, s, y)
		cancel()
		time.Sleep(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stats.Streams != 0 || len(s.streams) != 0 || s.stats.Buckets != 0 || s.stats.Unlisted != 0 {
			t.Errorf("after the stream: %+v, %d streams", s.stats, len(s.streams))
		}
	})
}

// check compares what a server has counted with what its only Envoy did.
func check(t *testing.T, s *Server, y *tally) {
	t.Helper()
	all, denied := y.sum(0, 60, "SHEDDABLE")
	got := s.Stats(time.Now()).Calls[spillway.Sheddable.Index()]
	if a, d := float64(got.AdmittedTotal), float64(got.RejectedTotal); a < 0.95*60*all || a > 1.001*60*all || d < 0.95*60*denied || d > 1.001*60*denied {
		t.Errorf("counted %+v, but the Envoy admitted %v and rejected %v", got, 60*all, 60*denied)
	}
	l := line(s, "mail")
	if l.Classes[spillway.Sheddable.Index()] != got || !l.Known || l.Limit != 200 {
		t.Errorf("the line of the customer is %+v", l)
	}
	if l.AdmittedRate < 150 || l.AdmittedRate > 250 || l.RejectedRate < 50 || l.RejectedRate > 150 || l.Rate < 100 || l.Debt < 0 || l.Debt > 1 {
		t.Errorf("the rates of the customer are %+v", l)
	}
	if l := line(s, "new"); !l.Known || l.Limit != 5 {
		t.Errorf("a customer that has a limit now: %+v", l)
	}
}

func line(s *Server, customer string) quota.CustomerStats {
	all := s.Customers(time.Now())
	i := slices.IndexFunc(all, func(c quota.CustomerStats) bool { return c.Customer == customer })
	if i < 0 {
		return quota.CustomerStats{}
	}
	return all[i]
}
