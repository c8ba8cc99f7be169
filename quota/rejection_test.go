package quota

import (
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// A pace begins again with the call that finds the bucket full, and keeps half of what is older
// than its window.
func TestPaceAtItsBounds(t *testing.T) {
	const later = time.Hour
	for _, row := range []struct {
		full, at time.Duration
		want     pace
	}{
		{later, paceWindow, pace{0, 11}},
		{later, paceWindow + 2, pace{paceWindow/2 + 1, 6}},
		{paceWindow, paceWindow, pace{paceWindow, 1}},
		{paceWindow + 1, paceWindow, pace{0, 11}},
	} {
		c := customer{pace: pace{0, 10}}
		c.buckets[len(c.buckets)-1].full = row.full
		if c.ask(row.at, 1); c.pace != row.want {
			t.Errorf("a bucket that is full at %v, asked at %v: %+v, want %+v", row.full, row.at, c.pace, row.want)
		}
	}
}

// rejectionOf returns the rejection of a customer that sends so many calls per second.
func rejectionOf(t *testing.T, c *customer, at time.Duration, level float64) *spillway.RejectedError {
	t.Helper()
	c.pace = pace{at, level}
	e, ok := errors.AsType[*spillway.RejectedError](c.rejection(at, time.Second, critical, time.Millisecond, 1))
	if !ok {
		t.Fatal("no rejection")
	}
	return e
}

// What a rejection says is refreshed after a second, and if the pace is more than twice or less
// than half of it.
func TestRejectionIsRefreshed(t *testing.T) {
	for _, row := range []struct {
		at          time.Duration
		level, want float64
	}{
		{refreshed - 1, 12, 10}, {refreshed, 12, 12}, {0, 20, 10}, {0, 20.1, 20.1}, {0, 5, 10}, {0, 4.9, 4.9},
	} {
		c := &customer{rate: 1}
		depth := threshold(time.Second, spillway.Critical.Index(), 0, int(spillway.Criticalities)-1).Seconds() // of the pace
		rejectionOf(t, c, 0, 10*depth)
		if e := rejectionOf(t, c, row.at, row.level*depth); e.Level != row.want {
			t.Errorf("%v per second after %v, where it was 10: a level of %v, want %v", row.level, row.at, e.Level, row.want)
		}
	}
}

// A turn is at most the depth of the bucket later than the next call could be admitted.
func TestTurnAtItsBound(t *testing.T) {
	var r rejections
	for i, want := range []time.Duration{time.Second, 3 * time.Second, 3 * time.Second} {
		if got := r.wait(10*time.Second, time.Second, 2*time.Second, time.Minute); got != want {
			t.Errorf("call %d waits %v, want %v", i, got, want)
		}
	}
}

// A level that is rounded is not below the limit that it exceeds.
func TestThreeDigits(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 5: 5, 100: 100, 100.4: 101, 100.6: 101, 1234: 1240, 0.1: 0.1} {
		if got := threeDigits(v); got != want {
			t.Errorf("%v is %v, want %v", v, got, want)
		}
	}
}

// Calls count for the window in which they come, and less and less in the next one.
func TestRecentAtItsBounds(t *testing.T) {
	var r recent
	for range 5 {
		r.at(0).AdmittedTotal++
	}
	r.at(recentWindow).AdmittedTotal++
	if admitted, _, _ := r.rates(recentWindow * 3 / 2); admitted != 0.35 {
		t.Errorf("%v per second, want half of 5 and 1 in 10 s", admitted)
	}
	r = recent{}
	r.at(0).AdmittedTotal++
	r.at(2*recentWindow).AdmittedTotal++
	if admitted, _, _ := r.rates(2 * recentWindow); admitted != 1 {
		t.Errorf("%v per second after a pause of two windows, want 1", admitted)
	}
}

// counting counts the leases of all unlisted customers together.
type counting struct {
	*Local

	leases int
}

func (c *counting) LeaseUnlisted(now time.Time, d Demand) Grant {
	c.leases++
	return c.Local.LeaseUnlisted(now, d)
}

// The lease of all unlisted customers together lasts as long as the Grant says.
func TestLeaseOfUnlistedCustomers(t *testing.T) {
	a := &counting{Local: mustLocal(t, LocalConfig{UnlistedTotal: Limit{Rate: 1000}, Interval: time.Second})}
	q := must(t, Config{Allocator: a})
	for i := range 25 {
		if _, err := q.Admit(t0.Add(time.Duration(i)*100*ms), callOf("a", critical)); err != nil {
			t.Fatal(err)
		}
	}
	if a.leases != 3 {
		t.Errorf("%d leases in 2.5 s, want 3", a.leases)
	}
}
