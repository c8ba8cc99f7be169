package attempts

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// tries is how often a request is sent at most.
const tries = 3

// TestShareVectors feeds a histogram with the requests of callers that are
// rejected with probability q, and compares the bars with the expected ones.
func TestShareVectors(t *testing.T) {
	race.SkipOneGoroutine(t)
	data, err := os.ReadFile("../conformance/retry/sre_ch21.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rows []struct{ Q, Attempt0, Attempt1, Attempt2 float64 } `json:"histogram_share_by_rejection_probability"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rows) < 5 {
		t.Fatalf("only %d rows", len(file.Rows))
	}
	for _, row := range file.Rows {
		r := rand.New(rand.NewPCG(1, 1))
		h := must(t, Config{FirstAttempts: 100_000, Share: 0.2})
		for range 100_000 {
			for attempt := range tries {
				h.Observe(t0, attempt)
				if r.Float64() >= row.Q {
					break
				}
			}
		}
		s := h.Stats(t0)
		for i, want := range []float64{row.Attempt0, row.Attempt1, row.Attempt2} {
			if got := float64(s.Counts[i]) / float64(s.Counts.Total()); math.Abs(got-want) > 0.005 {
				t.Errorf("q = %v: share of attempt %d is %.4f, want %.4f", row.Q, i, got, want)
			}
		}
		if want := row.Attempt1+row.Attempt2 > 0.2; s.DontRetry != want || math.Abs(s.RetryShare-row.Attempt1-row.Attempt2) > 0.005 {
			t.Errorf("q = %v: share of retries %.3f, don't retry %v, want %v", row.Q, s.RetryShare, s.DontRetry, want)
		}
	}
}

// A cluster is a number of tasks, each with its own histogram, and callers
// that send each request up to three times, at once, to a task chosen at random.
// A task serves up to its capacity, evened out over 10 ms, and rejects the rest.
type cluster struct {
	capacity []float64 // of each task, in requests per second
	load     float64   // requests per second, before retries
	share    float64   // Config.Share
}

const tick = time.Millisecond

// result is what a cluster did, once it had settled.
type result struct {
	success       float64 // of all requests, those that were served in the end
	amplification float64 // attempts per request
}

func (c cluster) run(t *testing.T) result {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	histograms := make([]*Histogram, len(c.capacity))
	for i := range histograms {
		histograms[i] = must(t, Config{Share: c.share})
	}
	room := make([]float64, len(c.capacity))
	var requests, served, attempts float64
	now := t0
	for range 25 * time.Second / tick {
		now = now.Add(tick)
		for i := range room {
			room[i] = min(room[i]+c.capacity[i]*tick.Seconds(), max(1, c.capacity[i]*0.01))
		}
		settled := now.Sub(t0) > 15*time.Second
		for range poisson(r, c.load*tick.Seconds()) {
			n, ok := send(r, now, room, histograms)
			if settled {
				requests++
				attempts += float64(n)
				if ok {
					served++
				}
			}
		}
	}
	return result{served / requests, attempts / requests}
}

// send makes one request, and returns how many attempts it took.
func send(r *rand.Rand, now time.Time, room []float64, histograms []*Histogram) (attempts int, ok bool) {
	for attempt := range tries {
		task := r.IntN(len(room))
		histograms[task].Observe(now, attempt)
		if room[task] >= 1 {
			room[task]--
			return attempt + 1, true
		}
		if histograms[task].DontRetry(now) {
			return attempt + 1, false
		}
	}
	return tries, false
}

// poisson returns how many events of a Poisson process with the given mean occur.
func poisson(r *rand.Rand, mean float64) (n int) {
	for p := r.ExpFloat64(); p < mean; p += r.ExpFloat64() {
		n++
	}
	return n
}

func tasks(capacity ...float64) []float64 { return capacity }

func TestPartialAndGlobalOverload(t *testing.T) {
	race.SkipOneGoroutine(t)
	partial := tasks(300, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000) // the first is down to less than a third of its load
	global := tasks(500, 500, 500, 500, 500, 500, 500, 500, 500, 500)
	for name, row := range map[string]struct {
		cluster
		success, most float64
	}{
		"one of ten overloaded":                 {cluster{partial, 10_000, 0}, 0.99, 1.12},
		"one of ten overloaded, off":            {cluster{partial, 10_000, -1}, 0.99, 1.12},
		"all overloaded at twice the capacity":  {cluster{global, 10_000, 0}, 0.48, 1.3},
		"all overloaded at ten times, the same": {cluster{global, 50_000, 0}, 0.09, 1.3},
	} {
		got := row.run(t)
		if got.success < row.success || got.amplification > row.most {
			t.Errorf("%s: %.4f served with %.3f attempts each; want at least %v with at most %v", name, got.success, got.amplification, row.success, row.most)
		}
		t.Logf("%s: %.4f served, %.3f attempts each", name, got.success, got.amplification)
	}
	off := cluster{global, 10_000, -1}.run(t)
	if off.amplification < 2.2 {
		t.Errorf("without histograms the overload makes %.2f attempts of one, which leaves nothing to show", off.amplification)
	}
}
