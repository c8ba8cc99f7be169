package spillsql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// each runs n callers at once and returns their errors.
func each(n int, call func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = call(i) })
	}
	all.Wait()
	return errs
}

func failures(errs []error) (n int) {
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}

// A burst that the database works off is not rejected, however long it is.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{takes: time.Millisecond}
		db, connector := open(t, w, Config{MaxConns: 10})
		errs := each(900, func(int) error { _, err := db.ExecContext(t.Context(), "burst"); return err })
		if failures(errs) > 0 || w.most != 10 || w.opened != 10 {
			t.Errorf("%d failed, %d at once, %d connections opened; %v", failures(errs), w.most, w.opened, connector.Stats(time.Now()))
		}
	})
}

// A standing queue is cut, so that what is served is served soon, and connections
// stay busy.
func TestStandingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{takes: 10 * time.Millisecond}
		db, connector := open(t, w, Config{MaxConns: 10})
		begun := time.Now()
		var mu sync.Mutex
		served, slowest := 0, time.Duration(0)
		var all sync.WaitGroup
		for i := range 10_000 { // in 1 s, of which the database can do 1,000
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				sent := time.Now()
				_, err := db.ExecContext(t.Context(), "work")
				mu.Lock()
				defer mu.Unlock()
				switch took := time.Since(sent); {
				case err == nil:
					served++
					if sent.Sub(begun) > 200*time.Millisecond {
						slowest = max(slowest, took)
					}
				case !errors.Is(err, spillway.ErrRejected):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if served < 1000 || slowest > 50*time.Millisecond {
			t.Errorf("%d served, the slowest took %v", served, slowest)
		}
		if s := connector.Stats(time.Now()); s.RejectedTotal != uint64(10_000-served) {
			t.Errorf("%d served, %d rejected", served, s.RejectedTotal)
		}
		if w.opened != 10 {
			t.Errorf("%d connections opened", w.opened)
		}
	})
}

// Higher classes are served first, and rejected last.
func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{takes: time.Second}
		db, _ := open(t, w, Config{MaxConns: 1})
		call := func(ctx context.Context, query string) error {
			_, err := db.ExecContext(ctx, query)
			return err
		}
		var errs [5]error
		var all sync.WaitGroup
		start := func(i int, c spillway.Criticality) {
			all.Go(func() { errs[i] = call(spillway.WithCriticality(t.Context(), c), fmt.Sprint(i)) })
			time.Sleep(10 * time.Millisecond)
		}
		start(0, spillway.Critical)
		start(1, spillway.Sheddable)
		time.Sleep(80 * time.Millisecond)
		start(2, spillway.Sheddable)    // now the queue stands, and the first one leaves it
		start(3, spillway.CriticalPlus) // as does the second one
		start(4, spillway.Sheddable)
		all.Wait()
		for i, want := range []bool{false, true, true, false, true} {
			if rejected := errors.Is(errs[i], spillway.ErrRejected); rejected != want {
				t.Errorf("%d: %v", i, errs[i])
			}
		}
	})
}

// A connection that changes hands takes its prepared statements along.
func TestPreparedStatementsChangeHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{takes: time.Millisecond}
		db, _ := open(t, w, Config{MaxConns: 4})
		s, err := db.PrepareContext(t.Context(), "prepared")
		if err != nil {
			t.Fatal(err)
		}
		if n := failures(each(400, func(int) error { _, err := s.ExecContext(t.Context()); return err })); n > 0 {
			t.Errorf("%d failed", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if w.prepared > 8 {
			t.Errorf("prepared %d times on %d connections", w.prepared, w.opened)
		}
	})
}

// Whatever callers do, no connection and no place in the queue is lost, and the limit holds.
func TestPoolModel(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := &worker{takes: time.Millisecond}
			w.answer = func(query string) error {
				if query == "connect" && w.opened%7 == 3 {
					w.opened++
					w.closed++
					return errFake
				}
				return nil
			}
			db, connector := open(t, w, Config{MaxConns: 3, QueueInterval: 5 * time.Millisecond})
			db.SetMaxIdleConns(2)
			db.SetConnMaxLifetime(20 * time.Millisecond)
			var all sync.WaitGroup
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(8000))*time.Microsecond)
				ctx = spillway.WithCriticality(ctx, spillway.Criticality(random.IntN(4)-2))
				wait, kind := time.Duration(random.IntN(100_000))*time.Microsecond, random.IntN(4)
				all.Go(func() {
					defer cancel()
					time.Sleep(wait)
					switch kind {
					case 0:
						if tx, err := db.BeginTx(ctx, nil); err == nil {
							_, _ = tx.ExecContext(ctx, "work")
							_ = tx.Rollback()
						}
					case 1:
						if rows, err := db.QueryContext(ctx, "rows"); err == nil {
							time.Sleep(time.Millisecond)
							_ = rows.Close()
						}
					default:
						_, _ = db.ExecContext(ctx, "work")
					}
				})
			}
			all.Wait()
			if w.most > 3 {
				t.Errorf("seed %d: %d statements at once", seed, w.most)
			}
			w.answer = nil
			if n := failures(each(3, func(int) error { return db.PingContext(t.Context()) })); n > 0 {
				t.Errorf("seed %d: %d of 3 pings failed: %+v", seed, n, connector.Stats(time.Now()))
			}
		})
	}
}

// Callers that wait for long statements are not rejected while there are few of them, and
// are served in the order of their arrival.
func TestLongStatements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{takes: 10 * time.Second}
		db, _ := open(t, w, Config{MaxConns: 4})
		errs := each(8, func(i int) error {
			time.Sleep(time.Duration(i) * time.Second)
			_, err := db.ExecContext(t.Context(), fmt.Sprint(i))
			return err
		})
		if n := failures(errs); n > 0 || !slices.IsSorted(w.order) {
			t.Errorf("%d failed; executed %v", n, w.order)
		}
	})
}
