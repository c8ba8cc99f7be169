package spillhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/egress"
)

// A polled is a base whose answers come after a time, and which can be down.
type polled struct {
	holds time.Duration
	down  atomic.Bool
	open  atomic.Int64
	sent  atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (p *polled) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	p.sent.Add(1)
	p.open.Add(1)
	defer p.open.Add(-1)
	select {
	case <-time.After(p.holds):
		return answer(req, http.StatusOK, ""), nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// polls is how many clients poll.
const polls = 100

// poll has all of them poll until the test ends, each with half a second after an error, and
// returns what ends that.
func (p *polled) poll(t *testing.T, rt http.RoundTripper, patience time.Duration) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	once := func() error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		resp, err := rt.RoundTrip(newRequest(t, ctx, http.MethodGet, http.NoBody))
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	for i := range polls {
		ended.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			for ctx.Err() == nil {
				if once() != nil {
					time.Sleep(time.Second / 2)
				}
			}
		})
	}
	return func() {
		cancel()
		ended.Wait()
	}
}

// TestLongPollsAfterAnOutage: all clients poll again some seconds after the backend is back, though
// no poll has an answer before the test ends.
func TestLongPollsAfterAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &polled{holds: time.Minute}
		p.down.Store(true)
		defer p.poll(t, must(NewTransport(TransportConfig{Base: p})), time.Hour)()
		time.Sleep(1500 * time.Millisecond)
		p.down.Store(false)
		time.Sleep(8 * time.Second)
		if n := p.open.Load(); n < polls {
			t.Errorf("%d of %d poll", n, polls)
		}
	})
}

// TestPollsOfAHungBackend: a backend that is back and does not answer gets no more than the calls of
// one deadline, and then one per second.
func TestPollsOfAHungBackend(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &polled{holds: time.Hour}
		p.down.Store(true)
		const patience, places = 5 * time.Second, 50
		rt := must(NewTransport(TransportConfig{Base: p, Egress: egress.Config{MaxInFlight: places}}))
		defer p.poll(t, rt, patience)()
		time.Sleep(5 * time.Second)
		p.down.Store(false)
		time.Sleep(3 * patience)
		if n := p.open.Load(); n > places {
			t.Errorf("%d calls in flight, want at most %d", n, places)
		}
		before := p.sent.Load()
		if before > 3*places {
			t.Errorf("%d calls within three deadlines", before)
		}
		time.Sleep(40 * time.Second)
		if n := p.sent.Load() - before; n > 41 {
			t.Errorf("%d calls in the next 40 s, want one per second", n)
		}
	})
}
