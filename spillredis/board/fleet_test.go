package board

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// measure asks for bands that need an idle machine.
var measure = flag.Bool("measure", false, "measure accuracy in real time, on an idle machine")

const (
	tasks    = 20
	interval = 200 * time.Millisecond
	limit    = 1000.
)

// A run is 20 tasks of one process, each with its own client, in real time.
type run struct {
	t      *testing.T
	fleets []*fleet.Fleet
	gates  []*quota.Quota
	began  time.Time
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	admitted []float64 // in each 100 ms
}

// newRun starts the tasks, each with its own client.
func newRun(t *testing.T, client func() redis.UniversalClient) *run {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{t: t, began: time.Now(), stop: cancel}
	for i := range tasks {
		f, err := fleet.New(fleet.Config{
			Task: fmt.Sprint("task-", i), Tasks: tasks, Interval: interval,
			Limits: quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: limit}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		q, err := quota.New(quota.Config{Allocator: f})
		if err != nil {
			t.Fatal(err)
		}
		r.fleets, r.gates = append(r.fleets, f), append(r.gates, q)
		b := mustBoard(t, client(), "fleet")
		r.done.Go(func() { fleet.Run(ctx, f, b) })
	}
	t.Cleanup(r.end)
	return r
}

func (r *run) end() {
	r.stop()
	r.done.Wait()
}

// drive offers three times the limit to the tasks, unevenly, until a time since the start.
func (r *run) drive(until time.Duration) {
	harmonic := 0.
	for i := range tasks {
		harmonic += 1 / float64(i+1)
	}
	owed := make([]float64, tasks)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for last := time.Now(); time.Since(r.began) < until; <-ticker.C {
		now := time.Now()
		for i, q := range r.gates {
			owed[i] += 3 * limit * now.Sub(last).Seconds() / float64(i+1) / harmonic
			for ; owed[i] >= 1; owed[i]-- {
				if _, err := q.Admit(now, spillway.Call{Customer: "mail"}); err == nil {
					r.count(now)
				}
			}
		}
		last = now
	}
}

func (r *run) count(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := int(now.Sub(r.began) / (100 * time.Millisecond))
	for len(r.admitted) <= w {
		r.admitted = append(r.admitted, 0)
	}
	r.admitted[w]++
}

// share returns what was admitted between two times, as a part of the limit.
func (r *run) share(from, to time.Duration) float64 {
	sum := 0.
	for w := int(from / (100 * time.Millisecond)); w < int(to/(100*time.Millisecond)) && w < len(r.admitted); w++ {
		sum += r.admitted[w]
	}
	return sum / (to - from).Seconds() / limit
}

// within fails the test if a share is not in a band, which is wide unless -measure is set.
func within(t *testing.T, what string, x, least, most float64) {
	t.Helper()
	t.Logf("%s: %.3f", what, x)
	if !*measure {
		least, most = least*0.6, most*1.4
	}
	if x < least || x > most {
		t.Errorf("%s: %.3f of the limit, want %.3g to %.3g", what, x, least, most)
	}
}

// commands returns how often a command was called.
func commands(t *testing.T, s *server, name string) (n int) {
	t.Helper()
	info := s.client(redis.UniversalOptions{}).Info(t.Context(), "commandstats").Val()
	_, rest, _ := strings.Cut(info, "cmdstat_"+name+":calls=")
	_, _ = fmt.Sscanf(rest, "%d", &n)
	return n
}

// Twenty tasks share a limit; the server is killed, and comes back empty.
func TestServerIsKilledAndComesBackEmpty(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 9 s")
	}
	s := newServer(t)
	r := newRun(t, func() redis.UniversalClient { return s.client(redis.UniversalOptions{}) })
	r.drive(4 * time.Second)
	// Urgent demand may take four round trips per interval; usually there is one.
	if n, most := commands(t, s, "evalsha"), int((time.Since(r.began)/interval+1)*(tasks+1)*4); n < tasks || n > most {
		t.Errorf("%d EVALSHA in %v, want at most %d", n, time.Since(r.began), most)
	}
	s.kill()
	away := 300 * time.Millisecond
	if !*measure {
		away = time.Second // so that every task of a busy machine meets an error
	}
	r.drive(4*time.Second + away)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	r.drive(9 * time.Second)
	within(t, "before", r.share(2*time.Second, 4*time.Second), 0.9, 1.2)
	within(t, "after", r.share(4*time.Second, 9*time.Second), 0.95, 1.05)
	if *measure {
		for from := 3 * time.Second; from+time.Second <= 9*time.Second; from += 100 * time.Millisecond {
			within(t, fmt.Sprint("second from ", from), r.share(from, from+time.Second), 0.85, 1.15)
		}
	}
	leaders := 0
	for i, f := range r.fleets {
		st := f.Stats(time.Now())
		if st.Leader {
			leaders++
		}
		if st.Epoch < 2 || st.ErrorsTotal == 0 || st.Tasks != tasks {
			t.Errorf("task %d: %+v, want errors, and levels of an epoch after the first for %d tasks", i, st, tasks)
		}
	}
	if leaders == 0 {
		t.Error("no task leads")
	}
	r.end()
	if n := s.client(redis.UniversalOptions{}).HLen(t.Context(), "spillway:{fleet}:reports").Val(); n != 1 { // when they began
		t.Errorf("%d tasks have left no goodbye", n-1)
	}
}

// The server is killed for good.
func TestServerIsGoneForGood(t *testing.T) {
	if !*measure {
		t.Skip("takes 20 s; quota/fleet has this test in virtual time. Run with -measure")
	}
	s := newServer(t)
	r := newRun(t, func() redis.UniversalClient { return s.client(redis.UniversalOptions{}) })
	r.drive(4 * time.Second)
	s.kill()
	r.drive(20 * time.Second)
	for from := 4 * time.Second; from+time.Second <= 20*time.Second; from += time.Second {
		within(t, fmt.Sprint("second from ", from), r.share(from, from+time.Second), 0.8, 1.1)
	}
}
