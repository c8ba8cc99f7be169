package tuner_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
	"github.com/seed90641741/spillway/tune"
)

// A fake is a limit that is always used in full, with a latency that the test sets.
type fake struct {
	mu      sync.Mutex // for what the test writes; it reads when all is still
	latency float64
	limit   float64
	sets    int
	err     error
}

func (f *fake) Read(_ time.Time, values []float64) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	values[0] = f.latency
	return f.limit
}

func (f *fake) Set(limit float64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sets++
	if f.err == nil {
		f.limit = limit
	}
	return f.err
}

// is sets the latency, and the error that Set returns.
func (f *fake) is(latency float64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latency, f.err = latency, err
}

// meddle sets the limit from outside.
func (f *fake) meddle(limit float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = limit
}

// run runs a tuner of a limit of 100 in a bubble.
func run(t *testing.T, enforce bool, do func(f *fake, x *tuner.Tuner, log *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		f, log := &fake{latency: 50, limit: 100}, new(bytes.Buffer)
		var running sync.WaitGroup
		x, err := tuner.Start(t.Context(), &running, tuner.Config{
			Name: "web", Limit: f, Lock: new(sync.Mutex), Logger: slog.New(slog.NewTextHandler(log, nil)),
			Tune: tune.Config{Limit: 100, Signals: []tune.Signal{{Name: "latency", Unit: "ms", Target: 50}}, Enforce: enforce},
		})
		if err != nil {
			t.Fatal(err)
		}
		do(f, x, log)
		x.Stop()
		running.Wait()
	})
}

// pass lets time pass, and the tuner step.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestMovesAreSetAndTold(t *testing.T) {
	run(t, true, func(f *fake, x *tuner.Tuner, log *bytes.Buffer) {
		pass(time.Second)
		if f.sets != 0 || log.Len() != 0 {
			t.Errorf("without a reason: set %d times; log:\n%s", f.sets, log)
		}
		f.is(100, nil)
		pass(750 * time.Millisecond)
		if f.limit != 95 || f.sets != 1 || x.Limit() != 95 {
			t.Errorf("limit %v, set %d times", f.limit, f.sets)
		}
		want := `level=INFO msg="a limit was moved" limit=web from=100 to=95 rule=aimd reason="latency is 100 ms, for 250ms above the target of 50 ms; 100 of 100 are used"`
		if !strings.Contains(log.String(), want) {
			t.Errorf("log:\n%s\nwant %s", log, want)
		}
		f.is(math.NaN(), nil)
		pass(6 * time.Second)
		if f.limit != 100 || !x.Stats(time.Now()).Fallback || !strings.Contains(log.String(), `level=WARN msg="a limit goes back to what is configured"`) {
			t.Errorf("without a signal: limit %v, log:\n%s", f.limit, log)
		}
		f.is(50, nil)
		pass(time.Second)
		if x.Stats(time.Now()).Fallback || !strings.Contains(log.String(), `msg="a limit follows its signals again"`) {
			t.Errorf("with it again: log:\n%s", log)
		}
	})
}

func TestObserverSetsNothing(t *testing.T) {
	run(t, false, func(f *fake, _ *tuner.Tuner, log *bytes.Buffer) {
		f.is(100, nil)
		pass(3 * time.Minute)
		if f.sets != 0 || strings.Count(log.String(), "a limit would be moved") != 3 {
			t.Errorf("set %d times; log:\n%s", f.sets, log)
		}
	})
}

func TestWhatCannotBeSetIsTriedAgain(t *testing.T) {
	run(t, true, func(f *fake, _ *tuner.Tuner, log *bytes.Buffer) {
		f.is(100, errors.New("no"))
		pass(750 * time.Millisecond)
		f.is(50, errors.New("no"))
		pass(500 * time.Millisecond)
		if f.limit != 100 || f.sets != 4 || strings.Count(log.String(), "a limit cannot be set") != 1 {
			t.Errorf("limit %v, set %d times; log:\n%s", f.limit, f.sets, log)
		}
		f.is(50, nil)
		pass(250 * time.Millisecond)
		if f.limit != 95 || !strings.Contains(log.String(), "a limit can be set again") {
			t.Errorf("limit %v; log:\n%s", f.limit, log)
		}
		f.meddle(1000) // somebody else
		pass(time.Minute)
		if f.limit != 95 {
			t.Errorf("a minute later: limit %v", f.limit)
		}
	})
}

func TestWrongConfig(t *testing.T) {
	if _, err := tuner.Start(t.Context(), new(sync.WaitGroup), tuner.Config{}); err == nil || !strings.Contains(err.Error(), "Limit is 0") {
		t.Errorf("error %v", err)
	}
}
