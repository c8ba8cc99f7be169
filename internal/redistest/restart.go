package redistest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Writer increments keys that no other Writer has, and keeps which were acknowledged.
type Writer struct {
	Name string
	Incr func(ctx context.Context, key string) error

	next, up, back atomic.Int64
	acked          sync.Map
	count          atomic.Int64
	before         int64 // of count, at the kill
}

// Since returns how many writes were acknowledged since the kill, and how long after the
// restart the first of those began that began after it.
func (w *Writer) Since() (writes int64, first time.Duration) {
	return w.count.Load() - w.before, time.Duration(w.back.Load() - w.up.Load())
}

func (w *Writer) run(ctx context.Context, callers int) {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				w.write(ctx)
			}
		})
	}
	all.Wait()
}

func (w *Writer) key(id int64) string { return fmt.Sprint(w.Name, " ", id) }

func (w *Writer) write(ctx context.Context) {
	id, begun := w.next.Add(1), time.Now().UnixNano()
	if err := w.Incr(ctx, w.key(id)); err != nil {
		<-time.After(5 * time.Millisecond)
		return
	}
	w.acked.Store(id, true)
	w.count.Add(1)
	if at := w.up.Load(); at != 0 && begun > at {
		w.back.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// Restart kills the server under the load of writers, ten callers each, and starts it again
// half a second later. It returns one second after each Writer has written again.
func (p *Process) Restart(t *testing.T, writers ...*Writer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() { w.run(ctx, 10) })
	}
	<-time.After(200 * time.Millisecond)
	for _, w := range writers {
		w.before = w.count.Load()
	}
	p.Kill()
	<-time.After(500 * time.Millisecond)
	p.Run(t)
	for _, w := range writers {
		w.up.Store(time.Now().UnixNano())
	}
	for _, w := range writers {
		for n := 0; w.back.Load() == 0; n++ {
			if n == 1000 { // 10 s
				t.Fatalf("%s: no write within 10 s of the restart", w.Name)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	<-time.After(time.Second)
	cancel()
	all.Wait()
}

// Check compares what get returns, the value of a key or 0, with what was acknowledged: no write
// is lost and none is made twice.
func (w *Writer) Check(t *testing.T, get func(key string) (int64, error)) {
	t.Helper()
	writes, first := w.Since()
	t.Logf("%s: %d of %d writes acknowledged, %d since the kill, the first %v after the restart", w.Name, w.count.Load(), w.next.Load(), writes, first)
	for id := range w.next.Load() {
		n, err := get(w.key(id + 1))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := w.acked.Load(id + 1); ok && n == 0 {
			t.Errorf("write %s was acknowledged and is lost", w.key(id+1))
		}
		if n > 1 {
			t.Errorf("write %s was made %d times", w.key(id+1), n)
		}
	}
}
