package benchmarks

import (
	"testing"
	"time"

	failsafelimit "github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// An admitter lets a request in, and reports whether it did.
type admitter func() bool

// wide lets in more than any loop can ask for, from a bucket that is never full.
var wide = []impl[admitter]{
	{"spillway", ourRate(ratelimit.Config{Rate: 1e6, BurstSeconds: 3600}, time.Now)},
	{"spillway-given-time", ourRate(ratelimit.Config{Rate: 1e6, BurstSeconds: 3600}, givenTime())},
	{"failsafe", failsafeRate(3600e6, time.Hour)},
	{"xtime", xtimeRate(1e6, 3600e6)},
}

// shut lets in one request a day.
var shut = []impl[admitter]{
	{"spillway", ourRate(ratelimit.Config{Rate: 1.0 / 86400}, time.Now)},
	{"spillway-given-time", ourRate(ratelimit.Config{Rate: 1.0 / 86400}, givenTime())},
	{"failsafe", failsafeRate(1, 24*time.Hour)},
	{"xtime", xtimeRate(1.0/86400, 1)},
}

func ourRate(c ratelimit.Config, now func() time.Time) func(testing.TB) admitter {
	return func(tb testing.TB) admitter {
		l := must(ratelimit.New(c))(tb)
		return func() bool { _, err := l.Admit(now(), spillway.Call{}); return err == nil }
	}
}

func failsafeRate(n uint, period time.Duration) func(testing.TB) admitter {
	return func(testing.TB) admitter { return failsafelimit.NewBursty[any](n, period).TryAcquirePermit }
}

func xtimeRate(perSecond rate.Limit, burst int) func(testing.TB) admitter {
	return func(testing.TB) admitter { return rate.NewLimiter(perSecond, burst).Allow }
}

func BenchmarkRatelimitAdmitted(b *testing.B) { bench(b, wide, benchAsk) }
func BenchmarkRatelimitRejected(b *testing.B) { bench(b, shut, benchAsk) }

// TestAdmitters expects all let in where there is room, and only the first of the
// day otherwise.
func TestAdmitters(t *testing.T) {
	each(t, "wide", wide, wantYes[admitter](1000))
	each(t, "shut", shut, wantYes[admitter](1))
}
