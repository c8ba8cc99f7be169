package clients

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// drip is a body that comes in pieces, one every 10 ms.
type drip struct {
	ctx         context.Context
	left, piece int
}

func (d *drip) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, context.Cause(d.ctx)
	case <-time.After(10 * time.Millisecond):
	}
	n := min(len(p), d.piece, d.left)
	d.left -= n
	if d.left == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (d *drip) Close() error { return nil }

// TestRateOfBodies: a body may take longer than its timeout if it comes at the least rate, and no
// longer than the total.
func TestRateOfBodies(t *testing.T) {
	for _, row := range []struct {
		name          string
		bounds        Bounds
		length, piece int
		ended         time.Duration // 0: the whole body comes
	}{
		{"dripping", Bounds{body: 200 * time.Millisecond, rate: 1000}, 1000, 1, 220 * time.Millisecond},
		{"fast for three times the timeout", Bounds{body: 200 * time.Millisecond, rate: 1000}, 60_000, 1000, 0},
		{"as fast as the rate", Bounds{body: 200 * time.Millisecond, rate: 1000}, 1000, 10, 0},
		{"fast, and too long", Bounds{body: 200 * time.Millisecond, rate: 1000, total: 300 * time.Millisecond}, 100_000, 1000, 300 * time.Millisecond},
		{"without bounds", Bounds{}, 1000, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(0, time.Hour)
			c, _ := served(t, s)
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), clientKey{}, c))
			var all sync.WaitGroup
			all.Go(func() { s.Watch(ctx, func() time.Duration { return 10 * time.Millisecond }) })
			body := &drip{left: row.length, piece: row.piece}
			x, r := NewExchange(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", body), &row.bounds)
			body.ctx = r.Context()
			if !s.Begin(x) {
				t.Fatal("the exchange is rejected")
			}
			begun := time.Now()
			_, err := io.Copy(io.Discard, r.Body)
			took := time.Since(begun)
			if (err != nil) != (row.ended > 0) || err != nil && (took < row.ended || took > row.ended+20*time.Millisecond) {
				t.Errorf("%s: %v after %v, want an end after %v", row.name, err, took, row.ended)
			}
			x.End()
			s.End(x)
			cancel()
			all.Wait()
		})
	}
}

// slowReader is a writer whose client reads at a rate. A part of what is written is in a buffer until the next flush.
type slowReader struct {
	http.ResponseWriter

	rate     int
	buffer   int
	buffered int
}

func (w *slowReader) send(n int) { time.Sleep(time.Duration(n) * time.Second / time.Duration(w.rate)) }

func (w *slowReader) Write(p []byte) (int, error) {
	all := w.buffered + len(p)
	w.buffered = min(all, w.buffer)
	w.send(all - w.buffered)
	return len(p), nil
}

func (w *slowReader) FlushError() error {
	w.send(w.buffered)
	w.buffered = 0
	return nil
}

// TestRateOfAnswers: what a client reads counts once, whether or not each piece is flushed, and whether it leaves by
// the write or by the flush.
func TestRateOfAnswers(t *testing.T) {
	const least = 1000
	for _, rate := range []int{least * 7 / 10, least * 15 / 10} {
		for _, piece := range []int{100, 1000, 32 << 10} {
			for _, buffer := range []int{0, piece / 2, 4 << 10} {
				for _, flushed := range []bool{true, false} {
					synctest.Test(t, func(t *testing.T) {
						x, _ := NewExchange(&slowReader{rate: rate, buffer: buffer}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
							&Bounds{rate: least, answer: 20 * time.Second})
						begun := time.Now()
						for time.Since(begun) < 10*time.Minute {
							_, _ = x.Write(make([]byte, piece))
							if flushed {
								_ = x.FlushError()
							}
						}
						x.writes.begin(monotonic())
						if got := x.overdue(monotonic()); got != (rate < least) {
							t.Errorf("%d B/s of at least %d in pieces of %d, %d of them buffered, flushed: %v: it is overdue: %v",
								rate, least, piece, buffer, flushed, got)
						}
						x.End()
					})
				}
			}
		}
	}
}
