package slow

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const ms = time.Millisecond

// A world is a Watch of one route, with the time.
type world struct {
	*Watch
	Counts

	now    time.Time
	random *rand.Rand
}

func newWorld(t *testing.T) *world {
	t.Helper()
	race.SkipOneGoroutine(t)
	return &world{Watch: New(), now: noon, random: rand.New(rand.NewPCG(1, 2))}
}

var report = Route{"main", "web", "/report"}

// run lets seconds pass, in each of which answers of a latency come. It returns for how many of them
// the route was slow.
func (w *world) run(seconds, perSecond int, waited time.Duration, latency func() time.Duration) (slow int) {
	for range seconds {
		w.now = w.now.Add(time.Second)
		for range perSecond {
			w.Add(waited, latency())
		}
		t := w.Counts.Read()
		w.See(w.now, report, &t)
		slow += len(w.Found())
	}
	return slow
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// TestBecomesSlow: an upstream or a queue that takes 10 s in place of 20 ms is found within seconds, until it
// ends, and so is where the requests wait.
func TestBecomesSlow(t *testing.T) {
	for name, row := range map[string]struct {
		waited, sent time.Duration
		here         bool
	}{
		"the upstream": {ms, 10 * time.Second, false}, "a queue": {10 * time.Second, 20 * ms, true}, "both": {5 * time.Second, 8 * time.Second, false},
	} {
		w := newWorld(t)
		if n := w.run(120, 20, ms, always(20*ms)); n > 0 {
			t.Errorf("%s: slow for %d s of a quiet time", name, n)
		}
		if n := w.run(10, 20, row.waited, always(row.sent)); n < 7 {
			t.Errorf("%s: slow for %d of the first 10 s", name, n)
		}
		if n := w.run(900, 20, row.waited, always(row.sent)); n != 900 {
			t.Errorf("%s: slow for %d of 900 s", name, n)
		}
		found := w.Found()[0]
		if found.Usual < 20*ms || found.Usual > 30*ms || found.Now < row.waited+row.sent*9/10 || found.Now > (row.waited+row.sent)*5/4 || (found.Waited > 0.5) != row.here {
			t.Errorf("%s: %+v", name, found)
		}
		headline, text := found.Notice()
		if !strings.HasPrefix(headline, "Requests are slow: route /report of web: 1") || strings.Contains(text, "/debug/queues") != row.here ||
			strings.Contains(text, "for the upstream") == row.here || found.Cluster != "web" {
			t.Errorf("%s: %q %q %q", name, headline, text, found.Cluster)
		}
		if n := w.run(60, 20, ms, always(20*ms)); n > 10 {
			t.Errorf("%s: slow for %d s after the end", name, n)
		}
	}
}

// TestRamp: latency that grows by a second per second, and one that grows over minutes, is found before it is
// usual.
func TestRamp(t *testing.T) {
	for _, row := range []struct{ before, seconds, within int }{{40, 20, 8}, {900, 300, 60}, {900, 1200, 200}} {
		w := newWorld(t)
		w.run(row.before, 20, 0, always(20*ms))
		first := -1
		for i := range row.seconds {
			grown := 10 * time.Second * time.Duration(i+1) / time.Duration(row.seconds)
			if w.run(1, 20, 0, always(20*ms+grown)) > 0 && first < 0 {
				first = i
			}
		}
		if first < 0 || first > row.within {
			t.Errorf("%+v: found after %d s", row, first)
		}
	}
}

// TestNormalVariation: none of these cases is a notice.
func TestNormalVariation(t *testing.T) {
	w := newWorld(t)
	often := func(share float64, rare, usual time.Duration) func() time.Duration {
		return func() time.Duration {
			if w.random.Float64() < share {
				return rare
			}
			return usual
		}
	}
	for name, day := range map[string]func() int{
		"a start": func() int { return w.run(25, 20, 0, always(10*time.Second)) },
		"one slow request": func() int {
			return w.run(60, 2, 0, always(20*ms)) + w.run(1, 1, 0, always(time.Minute)) + w.run(60, 2, 0, always(20*ms))
		},
		"a slow path of 4 %":  func() int { return w.run(36_000, 10, 0, often(0.04, 5*time.Second, 5*ms)) },
		"the same, few":       func() int { return w.run(36_000, 1, 0, often(0.04, 5*time.Second, 5*ms)) },
		"a slow path of 10 %": func() int { return w.run(36_000, 5, 0, often(0.1, 5*time.Second, 5*ms)) },
		"reports": func() int {
			return w.run(3600, 3, 0, func() time.Duration { return time.Duration(w.random.ExpFloat64() * 3e9) })
		},
		"a day":                 func() int { return w.run(600, 20, 0, always(20*ms)) + w.run(600, 90, 0, always(150*ms)) },
		"fast, then 300 ms":     func() int { return w.run(600, 20, 0, always(ms)) + w.run(600, 20, 0, always(300*ms)) },
		"long polls, all quiet": func() int { return w.run(3600, 3, 0, always(30*time.Second)) },
		"long polls, in turns": func() int {
			n := 0
			for i := range 20 { // the quiet time came first
				n += w.run(300, 3, 0, always([]time.Duration{30 * time.Second, 50 * ms}[i%2]))
			}
			return n
		},
	} {
		w = newWorld(t)
		if n := day(); n > 0 {
			t.Errorf("%s: slow for %d s", name, n)
		}
	}
}

// TestRoutesOfACluster: a cluster that is slow is one notice, by the route with most answers. Another cluster has one too.
func TestRoutesOfACluster(t *testing.T) {
	w, now := New(), noon
	var counts [4]Counts
	routes := [4]Route{{"main", "web", "/a"}, {"main", "web", "/b"}, {"other", "web", "/"}, {"main", "db", "/"}}
	for second := range 60 {
		now = now.Add(time.Second)
		for i, r := range routes {
			for range 20 + i%3 {
				counts[i].Add(0, map[bool]time.Duration{false: 20 * ms, true: 5 * time.Second}[second >= 45])
			}
			read := counts[i].Read()
			w.See(now, r, &read)
		}
	}
	found := w.Found()
	if len(found) != 2 || found[0].Route != routes[2] || found[0].Others != 2 || found[1].Route != routes[3] || found[1].Others != 0 {
		t.Errorf("%+v", found)
	}
	if headline, _ := found[0].Notice(); !strings.HasPrefix(headline, "Requests are slow: route / and 2 other routes of web: 5") {
		t.Error(headline)
	}
}

// TestSilence: a slow route without any answer stays slow for a minute.
func TestSilence(t *testing.T) {
	w := newWorld(t)
	w.run(120, 20, 0, always(20*ms))
	w.run(10, 20, 0, always(10*time.Second))
	if n := w.run(300, 0, 0, nil); n < 60 || n > 80 {
		t.Errorf("slow for %d s without an answer", n)
	}
}

// TestAnHourIsUsual: what lasts for more than an hour is usual from then on.
func TestAnHourIsUsual(t *testing.T) {
	w := newWorld(t)
	w.run(120, 20, 0, always(20*ms))
	if n := w.run(2*3600, 20, 0, always(time.Second)); n < 3500 || n > 3700 {
		t.Errorf("slow for %d s", n)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	var c Counts
	if n := testing.AllocsPerRun(100, func() { c.Add(ms, ms) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestConcurrentUse: no answer is lost, whatever is counted and read at once.
func TestConcurrentUse(t *testing.T) {
	var c Counts
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				c.Add(ms, time.Duration(i)*ms)
				if i%100 == 0 {
					c.Read()
				}
			}
		})
	}
	all.Wait()
	if got := c.Read(); got.Total() != 4000 || got.waited != 4000*ms {
		t.Errorf("%d answers, which waited for %v", got.Total(), got.waited)
	}
}
