package mongoproxy

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestTune makes a server slow, and quick again, and looks how the rate of the request
// limiter follows it, through a change of something else too.
func TestTune(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var slow atomic.Bool
	server := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if slow.Load() {
			<-time.After(40 * time.Millisecond)
		}
		return fine(h, rest)
	})
	f := newFront(t, func(m *config.Mongo) {
		m.Parameters.RequestEnabled, m.Parameters.RequestRate = true, 100
		m.RequestMode = "enforce"
		m.Tune = &config.Tune{Mode: "enforce", Latency: 20 * time.Millisecond, Reaction: 100 * time.Millisecond}
	}, server)
	p := f.dial()
	until := func(what string, is func(limit float64) bool) {
		t.Helper()
		eventually(t, what, func() bool {
			for i := range int32(20) {
				p.ask(msg(i, 0, ping))
			}
			return is(f.stats().Tuner.Limit)
		})
	}
	slow.Store(true)
	until("a limit of 30 at most", func(l float64) bool { return l <= 30 })
	low := f.stats().Tuner.Limit
	f.config.Mongo[0].MaxConnections = 77
	f.put()
	if s := f.stats().Tuner; s.Limit > 1.5*low {
		t.Errorf("after another configuration the limit is %v, was %v", s.Limit, low)
	}
	slow.Store(false)
	until("a limit of 60 at least", func(l float64) bool { return l >= 60 })
	for _, m := range f.stats().Tuner.Moves {
		if m.Reason() == "" || !m.Applied {
			t.Errorf("a move: %+v", m)
		}
	}
	f.config.Mongo[0].Tune = nil
	f.put()
	if f.stats().Tuner != nil {
		t.Error("a tuner without a configuration")
	}
}
