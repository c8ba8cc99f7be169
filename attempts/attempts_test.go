package attempts

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

const ms = time.Millisecond

var t0 = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func must(t testing.TB, c Config) *Histogram {
	t.Helper()
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A step is n requests at one time with one attempt number; then DontRetry is
// asked for.
type step struct {
	at      time.Duration
	n       int
	attempt int
	want    bool
}

func TestRows(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		steps  []step
	}{
		"nothing is known":                {Config{}, []step{{0, 0, 0, false}}},
		"first attempts only":             {Config{}, []step{{0, 5000, 0, false}}},
		"a fifth is not more than 0.2":    {Config{}, []step{{0, 80, 0, false}, {0, 20, 1, false}, {0, 1, 1, true}}},
		"third attempts are retries, too": {Config{}, []step{{0, 80, 0, false}, {0, 21, 2, true}}},
		"few requests say nothing":        {Config{}, []step{{0, 20, 0, false}, {0, 29, 1, false}, {0, 1, 1, true}}},
		"unless told so":                  {Config{MinRequests: -1}, []step{{0, 1, 0, false}, {0, 1, 1, true}}},
		"negative Share is off":           {Config{Share: -1}, []step{{0, 10, 0, false}, {0, 1000, 1, false}}},
		"retries alone":                   {Config{}, []step{{0, 50, 2, true}}},
		"forgotten after the window": {
			Config{}, []step{{0, 50, 0, false}, {0, 50, 1, true}, {9999 * ms, 0, 0, true}, {10 * time.Second, 0, 0, false}},
		},
		"forgotten after a thousand first attempts": {
			Config{}, []step{{0, 400, 0, false}, {0, 400, 1, true}, {1, 1050, 0, false}},
		},
		"but not before": {
			Config{}, []step{{0, 1, 0, false}, {0, 400, 1, true}, {1, 940, 0, true}},
		},
		"a clock that steps back counts into the present": {
			Config{}, []step{{time.Hour, 50, 0, false}, {0, 50, 1, true}, {time.Hour + 9999*ms, 0, 0, true}, {0, 0, 0, true}},
		},
		"absurd numbers are just retries": {
			Config{}, []step{{0, 80, math.MinInt, false}, {0, 20, math.MaxInt, false}, {0, 1, 1_000_000_000, true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := must(t, row.config)
			for i, s := range row.steps {
				for range s.n {
					h.Observe(t0.Add(s.at), s.attempt)
				}
				if got := h.DontRetry(t0.Add(s.at)); got != s.want {
					t.Fatalf("step %d at %v: %v, want %v (%+v)", i, s.at, got, s.want, h.Stats(t0.Add(s.at)))
				}
			}
		})
	}
}

func TestAbsurdNumbersShareTheLastBucket(t *testing.T) {
	h := must(t, Config{})
	for _, attempt := range []int{math.MinInt, -1, 0, 6, 7, 8, 1_000_000_000, math.MaxInt} {
		h.Observe(t0, attempt)
	}
	if got, want := h.Stats(t0).Counts, (Counts{0: 3, 6: 1, 7: 4}); got != want {
		t.Errorf("counts %v, want %v", got, want)
	}
}

func TestUpdate(t *testing.T) {
	h := must(t, Config{})
	for i := range 1000 {
		h.Observe(t0.Add(time.Duration(i)*ms), i%2)
	}
	now := t0.Add(time.Second)
	if err := h.Update(Config{Share: 0.6, Window: -1}); err == nil || !h.DontRetry(now) {
		t.Errorf("a failed Update: %v, and DontRetry is %v", err, h.DontRetry(now))
	}
	if err := h.Update(Config{Share: 0.6}); err != nil || h.DontRetry(now) {
		t.Errorf("Share 0.6: %v, and DontRetry is %v at one half", err, h.DontRetry(now))
	}
	if err := h.Update(Config{FirstAttempts: 100}); err != nil {
		t.Fatal(err)
	}
	h.Observe(now, 0)
	if n := h.Stats(now).Counts[0]; n > 100 || n < 50 {
		t.Errorf("%d first attempts are remembered, want at most 100", n)
	}
	if err := h.Update(Config{Window: 100 * ms}); err != nil {
		t.Fatal(err)
	}
	if n := h.Stats(now.Add(time.Minute)).Counts.Total(); n != 0 {
		t.Errorf("%d requests are remembered a minute later", n)
	}
}

// Bounds that are raised may leave more segments than the ring holds: the oldest
// go, and what is summed up is what is there.
func TestUpdateToWiderBounds(t *testing.T) {
	h := must(t, Config{FirstAttempts: 20, Window: time.Second})
	for range 20 { // a segment each
		h.Observe(t0, 0)
	}
	for i := range 20 { // a segment each, too
		h.Observe(t0.Add(time.Duration(i)*50*ms), 1)
	}
	if n := h.window.used; n < segments-2 {
		t.Fatalf("only %d segments to begin with", n)
	}
	if err := h.Update(Config{FirstAttempts: 1000, Window: time.Hour}); err != nil {
		t.Fatal(err)
	}
	now := t0.Add(time.Second)
	for range 900 { // 18 segments more
		h.Observe(now, 0)
	}
	var there Counts
	for i := range h.window.used {
		for k, n := range h.window.ring[(h.window.first+i)%segments].counts {
			there[k] += uint64(n)
		}
	}
	if s := h.Stats(now); s.Counts != there || h.window.used > segments {
		t.Errorf("summed up %v, there are %v in %d segments", s.Counts, there, h.window.used)
	}
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	for want, c := range map[string]Config{
		"Share is 1, must be below 1, or negative":                 {Share: 1},
		"Share is NaN, must":                                       {Share: math.NaN()},
		"Window is -1s, must be 100ms to 1h":                       {Window: -time.Second},
		"Window is 2h0m0s, must":                                   {Window: 2 * time.Hour},
		"FirstAttempts is 19, must be 20 to 1000000":               {FirstAttempts: 19},
		"FirstAttempts is -1, must":                                {FirstAttempts: -1},
		"MinRequests is 1001, must be at most FirstAttempts (1000": {MinRequests: 1001},
	} {
		h, err := New(c)
		if h != nil || err == nil || !strings.HasPrefix(err.Error(), "attempts: "+want) {
			t.Errorf("New(%+v) = %v, %v; want an error with %q", c, h, err, want)
		}
		if table, err := NewCustomers(c, 10); table != nil || err == nil {
			t.Errorf("NewCustomers(%+v) = %v, %v; want an error", c, table, err)
		}
	}
	for _, n := range []int{-1, maxCustomers + 1} {
		want := fmt.Sprintf("attempts: customers is %d, must be 1 to 1048576", n)
		if table, err := NewCustomers(Config{}, n); table != nil || err == nil || err.Error() != want {
			t.Errorf("NewCustomers(n = %d) = %v, %v", n, table, err)
		}
	}
}

func TestCustomersCountAgainstThemselves(t *testing.T) {
	table, err := NewCustomers(Config{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		table.Observe(t0, "liar", 1_000_000_000)
		table.Observe(t0, "honest", 0)
	}
	if !table.DontRetry(t0, "liar") || table.DontRetry(t0, "honest") || table.DontRetry(t0, "stranger") {
		t.Error("a claim counts against another customer, or not against the one who made it")
	}
	if table.DontRetry(t0.Add(time.Minute), "liar") {
		t.Error("a customer is not forgotten")
	}
}

func TestUpdateOfCustomers(t *testing.T) {
	table, err := NewCustomers(Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		table.Observe(t0, "a", 1)
	}
	if err := table.Update(Config{Share: 2}); err == nil || !table.DontRetry(t0, "a") {
		t.Errorf("a failed Update: %v, DontRetry is %v", err, table.DontRetry(t0, "a"))
	}
	if err := table.Update(Config{Share: -1}); err != nil || table.DontRetry(t0, "a") {
		t.Errorf("off: %v, DontRetry is %v", err, table.DontRetry(t0, "a"))
	}
}

// An untrusted client can name as many customers as it likes: the table does not grow, and
// customers with an entry keep it while they use it.
func TestStrangersTakeNoPlace(t *testing.T) {
	const places = 64
	table, err := NewCustomers(Config{}, places)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		table.Observe(t0, "old", 1)
	}
	for i := range 10_000 {
		table.Observe(t0.Add(time.Duration(i)*ms/2), fmt.Sprint("stranger ", i), 1)
	}
	now := t0.Add(5 * time.Second)
	if !table.DontRetry(now, "old") {
		t.Error("strangers took the place of a customer")
	}
	if len(table.slots) != places {
		t.Errorf("the table has grown to %d places", len(table.slots))
	}
	later := t0.Add(time.Minute)
	for range 100 {
		table.Observe(later, "new", 1)
	}
	if !table.DontRetry(later, "new") || table.DontRetry(later, "old") {
		t.Error("a place that nobody uses was not given away, or with its history")
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := must(t, Config{})
	table, err := NewCustomers(Config{}, 4)
	if err != nil {
		t.Fatal(err)
	}
	table.Observe(t0, "known", 0)
	now, i := t0, 0
	for name, f := range map[string]func(){
		"Observe":             func() { now = now.Add(ms); i++; h.Observe(now, i%3) },
		"DontRetry":           func() { h.DontRetry(now) },
		"Customers.Observe":   func() { now = now.Add(ms); table.Observe(now, "known", 1) },
		"Customers.DontRetry": func() { table.DontRetry(now, "known") },
		"Stats":               func() { h.Stats(now) },
	} {
		if n := testing.AllocsPerRun(500, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	h := must(t, Config{})
	table, err := NewCustomers(Config{}, 8)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 1000 {
				now := t0.Add(time.Duration(i) * ms)
				name := fmt.Sprint((i + w) % 20)
				h.Observe(now, i%3)
				table.Observe(now, name, i%3)
				h.DontRetry(now)
				table.DontRetry(now, name)
				if i%100 == w {
					if err := h.Update(Config{Share: 0.5}); err != nil {
						t.Error(err)
					}
					if err := table.Update(Config{Share: 0.5}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if s := h.Stats(t0.Add(time.Second)); !s.DontRetry || s.Counts[0] > 1000 || s.Counts[0] < 900 || math.Abs(s.RetryShare-2./3) > 0.02 {
		t.Errorf("afterwards %+v", s)
	}
}

// TestAsManyFirstAttempts: the window keeps exactly FirstAttempts of them.
func TestAsManyFirstAttempts(t *testing.T) {
	h, err := New(Config{FirstAttempts: parts, MinRequests: -1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 3 * parts {
		h.Observe(now, 0)
		if n := h.Stats(now).Counts[0]; n != uint64(min(i+1, parts)) {
			t.Fatalf("after %d first attempts the window has %d, want at most %d", i+1, n, parts)
		}
	}
}

func TestMostCustomers(t *testing.T) {
	if _, err := NewCustomers(Config{}, maxCustomers); err != nil {
		t.Error(err)
	}
}

// An idle window can be read again and again, wherever its segments begin.
func TestIdleIsReadAgain(t *testing.T) {
	h := must(t, Config{})
	now := t0
	for range 2 * segments {
		h.Observe(now, 0)
		now = now.Add(time.Hour)
		for range 2 {
			if s := h.Stats(now); s.Counts.Total() != 0 || h.DontRetry(now) {
				t.Fatalf("after an hour: %+v", s)
			}
		}
	}
}
