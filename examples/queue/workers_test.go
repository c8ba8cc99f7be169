package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

func newServer(t *testing.T, c ingress.Config) *ingress.Server {
	t.Helper()
	s, err := ingress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Eight workers do all jobs, no more at once than the gates admit, and report failed jobs.
func TestWorkers(t *testing.T) {
	broken := errors.New("broken")
	var rejected, now, most, done atomic.Int64
	full := make(chan struct{}) // closed when a worker was rejected
	server := newServer(t, ingress.Config{MaxInFlight: 2, RetryAfter: time.Millisecond, Observer: spillway.ObserverFunc(func(e spillway.Event) {
		if e.Rejected && rejected.Add(1) == 1 {
			close(full)
		}
	})})
	jobs := make(chan Job, 40)
	for i := range cap(jobs) {
		jobs <- Job{Kind: "mail", Run: func(context.Context) error {
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			defer now.Add(-1)
			<-full
			if done.Add(1); i%10 == 0 {
				return broken
			}
			return nil
		}}
	}
	close(jobs)
	var failures atomic.Int64
	Work(t.Context(), server, 8, jobs, func(_ Job, err error) {
		if failures.Add(1); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
	if done.Load() != 40 || most.Load() > 2 || failures.Load() != 4 {
		t.Errorf("%d jobs done, at most %d at once, %d failures", done.Load(), most.Load(), failures.Load())
	}
}

// Workers end with their context, also while they wait to ask again.
func TestWorkersEnd(t *testing.T) {
	server := newServer(t, ingress.Config{MaxInFlight: 1, RetryAfter: time.Minute})
	held, release := make(chan struct{}), make(chan struct{})
	jobs := make(chan Job, 2)
	jobs <- Job{Run: func(context.Context) error { close(held); <-release; return nil }}
	ctx, end := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	var all sync.WaitGroup
	all.Go(func() { Work(ctx, server, 2, jobs, func(_ Job, err error) { failed <- err }) })
	<-held
	jobs <- Job{Run: func(context.Context) error { return errors.New("ran") }}
	close(jobs)
	end()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
	close(release)
	all.Wait()
}
