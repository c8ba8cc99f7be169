package ingress

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// TestIdle: a wait for an idle moment ends, also after a rest, and each ends at once when closed.
func TestIdle(t *testing.T) {
	for _, i := range []idle{newIdle(), yields{}} {
		begin := time.Now()
		for range 100 {
			i.wait()
			i.rest()
		}
		if took := time.Since(begin); took < 100*takeOver {
			t.Errorf("%T: 100 rests took %v", i, took)
		}
		if err := i.close(); err != nil {
			t.Fatal(err)
		}
		i.wait()
		i.rest()
	}
}

// last returns which share of the waits end when nothing else is ready to run. 200 goroutines are
// ready at first, and each starts another one.
func last(i idle) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds, goroutines = 200, 200
	emptied := 0
	for range rounds {
		var ran atomic.Int64
		for range goroutines / 2 {
			go func() {
				go ran.Add(1)
				busy := uint64(1)
				for begin := time.Now(); time.Since(begin) < 2*time.Microsecond; {
					busy *= 3
				}
				ran.Add(int64(busy & 1)) // 1
			}()
		}
		if i.wait(); ran.Load() == goroutines {
			emptied++
		}
		for ran.Load() < goroutines {
			runtime.Gosched()
		}
	}
	return float64(emptied) / rounds
}

// TestPollsLast: the Go runtime polls the network when nothing else is ready to run, or after 10
// ms. What the package comment says of the idle priority rests on that. What only yields does not
// come last, which shows that the test measures something. If it fails with a new release of Go,
// requests are still let in, as with yields; find another way to come last.
func TestPollsLast(t *testing.T) {
	i := newIdle()
	defer i.close()
	if _, only := i.(yields); only {
		if runtime.GOOS == "linux" {
			t.Fatal("an eventfd cannot be polled")
		}
		t.Skip("only Linux has an eventfd: elsewhere the dispatcher yields, which TestOnlyYields tests")
	}
	polled, yielded := last(i), last(yields{})
	t.Logf("last: polled %.2f, yielded %.2f", polled, yielded)
	if polled < 0.5 || yielded > 0.2 {
		t.Errorf("last of all run %.2f of the polled waits, want 1; %.2f of those that yield, want 0", polled, yielded)
	}
}

// With an idle that only yields, all waiters run, by class if all were examined before.
func TestOnlyYields(t *testing.T) {
	s := must(t, Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: 10 * time.Second}})
	if err := s.dispatcher.stop(); err != nil {
		t.Fatal(err)
	}
	s.dispatcher.idle = yields{}
	first, _ := enter(s, spillway.Call{})
	const each = 50
	order := make(chan spillway.Criticality, 4*each)
	for class := spillway.Sheddable; class <= spillway.CriticalPlus; class++ {
		for range each {
			go func() {
				p, r := enter(s, spillway.Call{Criticality: class})
				if r.Rejected() {
					t.Error(r.Err)
				}
				order <- class
				p.Done(spillway.OutcomeServed)
			}()
		}
	}
	for s.Waiting() < 4*each {
		runtime.Gosched()
	}
	first.Done(spillway.OutcomeServed)
	sum := 0
	for i := range 4 * each {
		class := <-order
		if i < each {
			sum += class.Index()
		}
	}
	if s.Waiting() != 0 || s.Stats(time.Now()).InFlight.InFlight > 1 {
		t.Errorf("%d wait, %+v", s.Waiting(), s.Stats(time.Now()).InFlight)
	}
	if mean := float64(sum) / each; mean < 2.5 {
		t.Errorf("the mean class of the first quarter is %.2f, want about 3", mean)
	}
}
