package spillgrpc

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/thorough"
)

// A handler works on for clients that have left: 2 × 50 ms, 40 calls per second. Its clients give up after a second, and send more; half of
// their calls are SHEDDABLE. A server that starts into that behind a backlog, or is switched from observe to enforce in it, serves 80 % of
// what it can do 15 s after the time that the backlog needs, and the CRITICAL calls first.
func TestColdStart(t *testing.T) {
	for name, row := range map[string]*coldStart{
		"started":                     {times: 2, backlog: 10},
		"started, 10 times":           {times: 10, backlog: 10},
		"started, a long backlog":     {times: 2, backlog: 1000},
		"started, deadlines":          {times: 2, backlog: 10, deadlines: true},
		"switched":                    {times: 2, backlog: 10, observed: true, quick: true},
		"switched, 10 times":          {times: 10, backlog: 10, observed: true},
		"switched, in a long backlog": {times: 2, backlog: 1000, observed: true},
		"switched, deadlines":         {times: 2, backlog: 10, observed: true, deadlines: true},
	} {
		t.Run(name, func(t *testing.T) {
			if !row.quick && !thorough.Enabled() {
				t.Skip("one row is enough: run all with -tags thorough")
			}
			inBubble(t, row.run)
		})
	}
}

type coldStart struct {
	times, backlog      int
	observed, deadlines bool // deadlines: clients send theirs
	quick               bool

	client  pb.TestServiceClient
	waiting atomic.Int64
	served  [2]atomic.Int64 // SHEDDABLE and CRITICAL
	all     sync.WaitGroup
}

func (c *coldStart) run(t *testing.T) {
	t.Helper()
	const capacity = 40
	slots := make(chan struct{}, 2)
	work := func() {
		c.waiting.Add(1)
		slots <- struct{}{}               // the work is done although its client has left
		time.Sleep(50 * time.Millisecond) // of the bubble, as all times here
		<-slots
		c.waiting.Add(-1)
	}
	mode := spillway.ModeEnforce
	if c.observed {
		mode = spillway.ModeObserve
	}
	server := mustServer(t, ingress.Config{ShedMode: mode}, ServerConfig{})
	x := open(t, &service{unary: func(context.Context) error { work(); return nil }}, server.Options()...)
	c.client = pb.NewTestServiceClient(x.dial())
	for range c.backlog {
		c.all.Go(work)
	}
	send := func(d time.Duration) {
		for i, end := 0, time.Now().Add(d); time.Now().Before(end); i++ {
			time.Sleep(time.Second / time.Duration(c.times*capacity))
			c.all.Go(func() { c.call(i % 2) })
		}
	}
	send(3 * time.Second)
	if err := server.ingress.Update(ingress.Config{}); err != nil {
		t.Fatal(err)
	}
	send(3 * time.Second) // clients leave after one: until then a server that has just begun knows nothing
	send(time.Duration(c.waiting.Load())*time.Second/capacity + 15*time.Second)
	for i := range c.served {
		c.served[i].Store(0)
	}
	send(10 * time.Second)
	sheddable, critical := c.served[0].Load(), c.served[1].Load()
	if sheddable+critical < 10*capacity*8/10 {
		t.Errorf("%d served in 10 s, the handler can do %d: %+v", sheddable+critical, 10*capacity, server.ingress.Stats(time.Now()).Concurrency)
	}
	if sheddable > (sheddable+critical)/10 {
		t.Errorf("%d SHEDDABLE calls and %d CRITICAL calls were served", sheddable, critical)
	}
	c.all.Wait()
	for c.waiting.Load() > 0 {
		time.Sleep(50 * time.Millisecond)
	}
}

// call makes a call whose client gives up after a second.
func (c *coldStart) call(class int) {
	ctx, leave := context.WithCancel(context.Background())
	if c.deadlines {
		ctx, leave = context.WithTimeout(context.Background(), time.Second)
	}
	defer leave()
	defer time.AfterFunc(time.Second, leave).Stop()
	if class == 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-request-criticality", "SHEDDABLE")
	}
	if _, err := c.client.UnaryCall(ctx, &pb.SimpleRequest{}); err == nil {
		c.served[class].Add(1)
	}
}
