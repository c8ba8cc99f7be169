package main

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

// When a user gives up a task, its calls leave the queue of the back service at once: over a closed connection to the front service, and
// another one or a reset stream behind it.
func TestFailedTaskLetsGo(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{overHTTP, overGRPC} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			const calls = 5
			c := inside
			c.MaxInFlight, c.Shed.MaxWait = 1, 10*time.Second
			gates, err := ingress.New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer gates.Close()
			ask := startTask(t, wire, gates, calls)
			var took []time.Duration
			for range 20 {
				ctx, giveUp := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- ask(ctx) }()
				until(t, func() bool { return gates.Waiting() == calls-1 })
				began := time.Now()
				giveUp()
				until(t, func() bool { return gates.Waiting() == 0 })
				took = append(took, time.Since(began))
				if err := <-done; err == nil {
					t.Error("a task without a slot was done")
				}
			}
			slices.Sort(took)
			t.Logf("%d calls left after %v in the median, %v at most", calls, took[len(took)/2], took[len(took)-1])
			if median := took[len(took)/2]; median > time.Second { // mostly 1 ms; the processors may be busy
				t.Errorf("half of the tasks left after %v or more", median)
			}
		})
	}
}

// startTask starts a back service that has no slot, and a front service that makes so many calls at once, and returns what asks it for a task.
func startTask(t *testing.T, wire string, gates *ingress.Server, calls int) (ask func(context.Context) error) {
	t.Helper()
	serve, stop, err := (&back{slots: make(chan struct{})}).server(wire, gates)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = serve(l) // until it is stopped
	}()
	t.Cleanup(func() {
		stop()
		<-served
	})
	f, addr, err := (&trial{way: atOnce, calls: calls}).startFront(wire, []string{l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	user, closes, err := newClient([]string{addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closes)
	return func(ctx context.Context) error { return get(ctx, user) }
}

// until waits until something is true.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); {
		<-time.After(20 * time.Microsecond)
		if time.Since(began) > 30*time.Second {
			t.Fatal("not within 30 s")
		}
	}
}
