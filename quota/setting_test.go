package quota

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// TestSetting: a rejection names the limit that customers share, if it is for one of those and not for
// the own limit of the customer, and has that limit or the part of it.
func TestSetting(t *testing.T) {
	for name, row := range map[string]struct {
		limits    LocalConfig
		customers int
		listed    bool
		setting   string
		limit     float64 // 0: any part
		unit      string
	}{
		"own":              {LocalConfig{DefaultLimit: Limit{Rate: 5}, UnlistedTotal: Limit{Rate: 1000}}, 1, false, "", 5, "per second"},
		"many names":       {LocalConfig{DefaultLimit: Limit{Rate: 5}, UnlistedTotal: Limit{Rate: 20}}, 500, false, UnlistedTotal, 20, "per second by all unlisted customers together"},
		"a part of all":    {LocalConfig{UnlistedTotal: Limit{Rate: 20}}, 2, false, UnlistedTotal, 0, "per second as its part of unlisted_total"},
		"capacity":         {LocalConfig{Capacity: 20}, 3, true, Capacity, 0, "per second as its part of capacity"},
		"unlisted, by it":  {LocalConfig{Capacity: 20, UnlistedTotal: Limit{Rate: 1000}}, 3, false, Capacity, 0, "per second as its part of capacity"},
		"listed, its own":  {LocalConfig{UnlistedTotal: Limit{Rate: 1}}, 1, true, "", 10, "per second"},
		"listed, capacity": {LocalConfig{Capacity: 5}, 1, true, Capacity, 5, "per second as its part of capacity"},
	} {
		row.limits.Customers = map[string]Limit{}
		for i := range row.customers {
			if row.listed {
				row.limits.Customers[fmt.Sprint("c", i)] = Limit{Rate: 10}
			}
		}
		q := must(t, Config{Allocator: mustLocal(t, row.limits)})
		units := make(map[string]*spillway.RejectedError)
		for i := range 4000 {
			if _, err := q.Admit(t0.Add(time.Duration(i)*5*ms), callOf(fmt.Sprint("c", i%row.customers), critical)); err != nil && i > 200 { // it knows what they want
				e, _ := errors.AsType[*spillway.RejectedError](err)
				units[e.Unit] = e
				if e.Setting != row.setting || !strings.Contains(e.Advice, row.setting) || strings.Contains(e.Advice, "the customer has") != (row.setting == "") {
					t.Fatalf("%s: %+v", name, e)
				}
			}
		}
		if e := units[row.unit]; e == nil || row.limit > 0 && e.Limit != row.limit || e.Limit > 20 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestNoCustomer: calls without a customer share one default limit, and a rejection of them says so.
func TestNoCustomer(t *testing.T) {
	q := must(t, Config{Allocator: mustLocal(t, LocalConfig{DefaultLimit: Limit{Rate: 5}})})
	admitted := 0
	var last *spillway.RejectedError
	for i := range 2000 { // 200 per second
		if _, err := q.Admit(t0.Add(time.Duration(i)*5*ms), callOf("", critical)); err == nil {
			admitted++
		} else {
			last, _ = errors.AsType[*spillway.RejectedError](err)
		}
	}
	if admitted < 48 || admitted > 56 { // 5 per second, and a burst
		t.Errorf("%d calls in 10 s", admitted)
	}
	if last == nil || last.Unit != "per second by all calls without a customer of their own" || last.Limit != 5 || !strings.Contains(last.Advice, "name the customer of each call") {
		t.Errorf("%+v", last)
	}
}

// TestStatsOfUnlisted: all unlisted customers together have a line, with their limit and their calls, if
// they have a limit. The lines of customers say what makes them have less than their own limit.
func TestStatsOfUnlisted(t *testing.T) {
	for _, total := range []float64{0, 20} {
		q := must(t, Config{Allocator: mustLocal(t, LocalConfig{
			Customers: map[string]Limit{"acme": {Rate: 10}}, DefaultLimit: Limit{Rate: 5}, UnlistedTotal: Limit{Rate: total},
		})})
		if n := len(q.Stats(t0)); n != 1 {
			t.Errorf("%d lines before the first call, want that of the shared bucket", n)
		}
		const calls = 4000 // 200 per second
		for i := range calls {
			_, _ = q.Admit(t0.Add(time.Duration(i)*5*ms), callOf(fmt.Sprint("c", i%10), critical))
			_, _ = q.Admit(t0.Add(time.Duration(i)*5*ms), callOf("acme", critical))
		}
		lines, admitted := 0, 0.
		for _, s := range q.Stats(t0.Add(calls * 5 * ms)) {
			switch {
			case s.Unlisted:
				lines++
				// Their own buckets, with a part of the total each, reject most before: for the total as well.
				if s.Limit != total || s.Rate != total || math.Abs(s.AdmittedRate-total) > 0.1*total || math.Abs(s.RejectedRate-180) > 4 || s.Customer != "" {
					t.Errorf("%+v", s)
				}
			case s.Customer == "acme":
				if s.Limit != 10 || s.Setting != "" || math.Abs(s.AdmittedRate-10) > 1 || math.Abs(s.RejectedRate-190) > 2 {
					t.Errorf("%+v", s)
				}
			case s.Customer != "":
				admitted += s.AdmittedRate
				if s.Limit != 5 || (s.Setting == UnlistedTotal) != (total > 0) || math.Abs(s.AdmittedRate+s.RejectedRate-20) > 0.5 {
					t.Errorf("%+v", s)
				}
			}
		}
		if want := map[float64]int{0: 0, 20: 1}[total]; lines != want {
			t.Errorf("a total of %v: %d lines, want %d", total, lines, want)
		}
		if want := map[float64]float64{0: 50, 20: 20}[total]; math.Abs(admitted-want) > 0.1*want {
			t.Errorf("a total of %v: %v per second are admitted, want %v", total, admitted, want)
		}
	}
}

// TestRecent: rates are those of the last 10 seconds, of a shorter time at the begin, and zero after a pause.
func TestRecent(t *testing.T) {
	var r recent
	rate := func(at time.Duration, want float64) {
		t.Helper()
		if got, _, _ := r.rates(at); math.Abs(got-want) > 0.06*want+0.01 {
			t.Errorf("at %v: %v per second, want %v", at, got, want)
		}
	}
	rate(0, 0)
	for at := time.Minute; at < 2*time.Minute; at += 50 * ms { // 20 per second
		r.at(at).AdmittedTotal++
		if since := at - time.Minute; since > 2*time.Second && since%time.Second == 0 {
			rate(at, 20)
		}
	}
	rate(2*time.Minute+5*time.Second, 10)
	rate(2*time.Minute+25*time.Second, 0)
}

// TestUsedRate: what was charged in the last 10 seconds counts, measured costs included.
func TestUsedRate(t *testing.T) {
	q := must(t, Config{Allocator: mustLocal(t, LocalConfig{DefaultLimit: Limit{Rate: 1000}})})
	for i := range 100 { // 10 per second
		now := t0.Add(time.Duration(i) * 100 * ms)
		ticket, err := q.Admit(now, callOf("a", critical))
		if err != nil {
			t.Fatal(err)
		}
		q.Charge(now, &ticket, 4)
		ticket.Settle(now, spillway.OutcomeServed)
	}
	if got := statsOf(t, q, 10*time.Second, "a").UsedRate; math.Abs(got-50) > 1 {
		t.Errorf("%v per second are used, want 50", got)
	}
	if got := statsOf(t, q, 31*time.Second, "a").UsedRate; got != 0 {
		t.Errorf("%v per second are used after a pause", got)
	}
}

// TestRejectionByTotalAllocatesNothing: rejections for all unlisted customers together are shared, too,
// whatever names the calls have.
func TestRejectionByTotalAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	q := must(t, Config{Allocator: mustLocal(t, LocalConfig{DefaultLimit: Limit{Rate: 5}, UnlistedTotal: Limit{Rate: 20}})})
	var calls []spillway.Call
	for i := range 500 {
		calls = append(calls, callOf(fmt.Sprint("c", i), critical))
	}
	for range 2 {
		for _, c := range calls {
			_, _ = q.Admit(t0, c)
		}
	}
	i, rejected := 0, 0
	if n := testing.AllocsPerRun(2000, func() {
		i++
		if _, err := q.Admit(t0, calls[i%len(calls)]); err != nil {
			rejected++
		}
	}); n > 0 || rejected < 2000 {
		t.Errorf("%v allocations, %d rejected", n, rejected)
	}
}
