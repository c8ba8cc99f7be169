package mongoproxy

import (
	"bufio"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
	"github.com/seed90641741/spillway/internal/mongowire"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
)

// A server works on for clients that have left: 2 × 20 ms, 100 commands per second. Its clients hang up after half a second, and send more,
// half of it SHEDDABLE. A proxy that starts into that, is switched from observe to enforce in it, or is started again in it, serves 80 % of
// what the server can do 15 s after what waits there is done, and the CRITICAL commands first.
func TestColdStart(t *testing.T) {
	if race.Enabled || !thorough.Enabled() {
		t.Skip("it takes more than ten seconds of real time, without the race detector: run it with -tags thorough")
	}
	for name, row := range map[string]coldStart{
		"started":             {times: 2},
		"started, 10 times":   {times: 10},
		"switched":            {times: 2, observed: true},
		"switched, maxTimeMS": {times: 2, observed: true, maxTime: true},
		"started again":       {times: 2, again: true},
	} {
		t.Run(name, row.run)
	}
}

type coldStart struct {
	times                    int
	observed, again, maxTime bool
}

func (row coldStart) run(t *testing.T) {
	t.Helper()
	pool := gatewaytest.NewPool()
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		pool.Work()
		return fine(h, rest)
	})
	in := func(mode config.Mode) *front { return newFront(t, func(m *config.Mongo) { m.Shed.Mode = mode }, s) }
	var f atomic.Pointer[front]
	if row.observed {
		f.Store(in("observe"))
	} else {
		f.Store(in("enforce"))
	}
	idle := make(chan *peer, 1000)
	stop := pool.Offer(row.times, func(class int) bool { return impatient(idle, f.Load().addr, class, row.maxTime) })
	<-time.After(3 * time.Second)
	switch {
	case row.observed:
		x := f.Load()
		x.config.Mongo[0].Shed.Mode = "enforce"
		x.put()
	case row.again:
		old := f.Swap(in("enforce"))
		_ = old.drain() // it cuts what is in progress
	}
	<-time.After(2 * time.Second) // clients leave after half a second: until then a proxy that has just begun knows nothing
	if err := pool.AwaitProtection(); err != nil {
		t.Errorf("%v: %+v", err, f.Load().stats().Gate.Concurrency)
	}
	stop()
	close(idle)
	for p := range idle {
		_ = p.Close()
	}
}

// impatient sends a command on an idle connection, or a new one, and reports whether it was answered in time. The client hangs up after
// half a second.
func impatient(idle chan *peer, addr string, class int, maxTime bool) bool {
	var p *peer
	select {
	case p = <-idle:
	default:
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		p = &peer{Conn: c, src: bufio.NewReader(c)}
	}
	if p.RemoteAddr().String() != addr || p.SetDeadline(time.Now().Add(500*time.Millisecond)) != nil {
		_ = p.Close()
		return false
	}
	_, err := p.Write(msg(1, 0, doc(func(b *mongowire.Builder) {
		b.Text("find", "things")
		b.Value("comment", mongowire.Value{Kind: mongowire.KindDocument, Data: doc(func(b *mongowire.Builder) {
			b.Text("criticality", []string{"SHEDDABLE", "CRITICAL"}[class])
		})})
		if maxTime {
			b.Int("maxTimeMS", 500)
		}
		b.Text("$db", "test")
	})))
	if err != nil {
		_ = p.Close()
		return false
	}
	_, answer, err := p.try()
	if err != nil {
		_ = p.Close()
		return false
	}
	select {
	case idle <- p:
	default:
		_ = p.Close()
	}
	return isOK(answer)
}
