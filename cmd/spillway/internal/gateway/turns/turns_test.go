package turns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Places: 1, Waiting: 6, MaxWait: time.Minute})
		var mu sync.Mutex
		var order []string
		enter := func(c spillway.Criticality, customer, name string) {
			go func() {
				err := q.Enter(t.Context(), Request{Criticality: c, Customer: customer})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					name = "!" + name
				}
				order = append(order, name)
			}()
			synctest.Wait()
		}
		enter(spillway.Critical, "", "first")
		enter(spillway.Sheddable, "a", "low1")
		enter(spillway.Critical, "a", "a1")
		enter(spillway.Critical, "a", "a2")
		enter(spillway.Critical, "a", "a3")
		enter(spillway.Critical, "b", "b1")
		enter(spillway.CriticalPlus, "c", "high") // the sixth
		enter(spillway.Critical, "b", "b2")       // low1 makes place
		enter(spillway.Critical, "c", "c1")       // a3 makes place
		enter(spillway.Critical, "a", "a4")       // nobody has more than a
		enter(spillway.Sheddable, "d", "low2")    // nor less critical
		for q.Stats().Busy > 0 {
			q.Leave(Request{})
			synctest.Wait()
		}
		want := "first !low1 !a3 !a4 !low2 high a1 b1 c1 a2 b2"
		if got := strings.Join(order, " "); got != want {
			t.Errorf("order: %s\nwant:  %s", got, want)
		}
	})
}

// Of one customer, the task with more progress gets the next slot, and of a full queue the task with less progress is rejected, and of
// several the one with the lower level. Customers take turns whatever their tasks are.
func TestQueueKeepsTasksWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Places: 1, Waiting: 4, MaxWait: time.Minute})
		var mu sync.Mutex
		var order []string
		enter := func(customer string, p spillway.Progress, l spillway.Level, name string) {
			go func() {
				err := q.Enter(t.Context(), Request{Customer: customer, Progress: p, Level: l})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					name = "!" + name
				}
				order = append(order, name)
			}()
			synctest.Wait()
		}
		enter("a", 0, 1, "first")
		enter("a", 0, 100, "new high")
		enter("a", 0, 50, "new low")
		enter("b", 0, 1, "other")
		enter("a", 9, 1, "begun")       // the fourth
		enter("a", 0, 20, "new lowest") // none is below it
		enter("a", 1, 1, "second call") // new low makes place
		enter("b", 9, 128, "other begun")
		for q.Stats().Busy > 0 {
			q.Leave(Request{})
			synctest.Wait()
		}
		want := "first !new lowest !new low !new high begun other begun second call other"
		if got := strings.Join(order, " "); got != want {
			t.Errorf("order: %s\nwant:  %s", got, want)
		}
	})
}

func TestQueueLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Places: 1, Waiting: 2, MaxWait: time.Second})
		if err := q.Enter(t.Context(), Request{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := q.Enter(t.Context(), Request{}); !errors.Is(err, spillway.ErrRejected) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := q.Enter(ctx, Request{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that leaves: %v", err)
		}
		q.Leave(Request{})
		if s := q.Stats(); s != (Stats{Places: 1, ExpiredTotal: 1}) {
			t.Errorf("afterwards: %+v", s)
		}
	})
}

// TestQueueUnderFire has clients come, leave and change their minds while the limits change:
// never too many run, and in the end the queue is empty.
func TestQueueUnderFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Places: 8, Waiting: 40, MaxWait: 20 * time.Millisecond})
		var all sync.WaitGroup
		for i := range 200 {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			all.Go(func() {
				for range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(40))*time.Millisecond)
					err := q.Enter(ctx, Request{Criticality: spillway.Criticality(r.IntN(4) - 2), Customer: fmt.Sprint(r.IntN(5))})
					if err == nil {
						if s := q.Stats(); s.Busy > 8 || s.Waiting > 40 {
							t.Errorf("too many: %+v", s)
						}
						time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
						q.Leave(Request{})
					}
					cancel()
				}
			})
		}
		for i := range 20 {
			time.Sleep(5 * time.Millisecond)
			q.Update(Limits{Places: 5 + i%4, Waiting: 40, MaxWait: 20 * time.Millisecond})
		}
		all.Wait()
		s := q.Stats()
		if s.Busy != 0 || s.Waiting != 0 {
			t.Errorf("afterwards: %+v", s)
		}
		for class := range q.all.classes {
			if c := &q.all.classes[class]; c.ring.Len() != 0 || len(c.lines) != 0 || len(c.greedy) != 0 {
				t.Errorf("class %d has %d customers left", class, c.ring.Len())
			}
		}
	})
}

// TestLongBodiesLeavePlaces: requests whose bodies are still being received leave a quarter of
// the slots to others, and no request is lost.
func TestLongBodiesLeavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Places: 8, Waiting: 100, MaxWait: time.Minute})
		ctx := context.Background()
		release := make(chan struct{})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := q.Enter(ctx, Request{Customer: "slow", Incoming: true}); err != nil {
					t.Error(err)
					return
				}
				<-release
				q.Leave(Request{Incoming: true})
			})
		}
		synctest.Wait()
		if s := q.Stats(); s.Busy != 6 || s.Waiting != 14 {
			t.Errorf("%+v, want 6 busy and 14 waiting", s)
		}
		began := time.Now()
		for range 2 {
			if err := q.Enter(ctx, Request{Customer: "whole"}); err != nil || time.Since(began) > 0 {
				t.Errorf("a whole request enters after %v: %v", time.Since(began), err)
			}
		}
		q.Leave(Request{})
		q.Leave(Request{})
		close(release)
		all.Wait()
		if s := q.Stats(); s.Busy != 0 || s.Waiting != 0 || q.incoming.stats().Busy != 0 {
			t.Errorf("%+v and %+v, want nothing left", s, q.incoming.stats())
		}
	})
}

// TestLongBodiesWaitNoLonger: the time in both queues together is bounded by maxWait.
func TestLongBodiesWaitNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Places: 1, Waiting: 100, MaxWait: time.Minute})
		ctx := context.Background()
		if err := errors.Join(q.incoming.enter(ctx, Request{}, 0), q.Enter(ctx, Request{})); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(40*time.Second, q.incoming.leave) // the other place stays taken
		began := time.Now()
		if err := q.Enter(ctx, Request{Customer: "", Incoming: true}); !strings.HasSuffix(fmt.Sprint(err), "by batch at 60000 of 60000 ms waited: the turn did not come in time") || time.Since(began) != time.Minute {
			t.Errorf("%v after %v, want one after a minute", err, time.Since(began))
		}
		if s := q.incoming.stats(); s.Busy != 0 || s.Waiting != 0 {
			t.Errorf("%+v, want nothing left", s)
		}
	})
}

// TestTurnsAreTimed: only requests that wait are counted, with their waiting time.
func TestTurnsAreTimed(t *testing.T) {
	q := New(Limits{Places: 1, Waiting: 1, MaxWait: time.Minute})
	if err := q.Enter(t.Context(), Request{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- q.Enter(t.Context(), Request{}) }()
	for q.Stats().Waiting == 0 {
		<-time.After(time.Millisecond)
	}
	if err := q.Enter(t.Context(), Request{}); !strings.HasSuffix(fmt.Sprint(err), "by batch at 1 of 1 requests in the queue: the queue is full") {
		t.Errorf("one more: %v", err)
	}
	q.Leave(Request{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := q.Stats(); s.TurnsTotal != 1 || s.Waited <= 0 || s.Waited > time.Minute {
		t.Errorf("%+v", s)
	}
	q.Leave(Request{})
}
