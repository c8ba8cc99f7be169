package gatewaytest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	slots = 2
	takes = 20 * time.Millisecond

	capacity = slots * int(time.Second/takes) // requests per second, on a machine that is not busy
)

// A Pool is a service with two slots, in which a request takes 20 ms. Make one with [NewPool].
type Pool struct {
	slots        chan struct{}
	queued, done atomic.Int64
	held         atomic.Int64 // time in slots
	served       [2]atomic.Int64
}

// NewPool returns a Pool.
func NewPool() *Pool { return &Pool{slots: make(chan struct{}, slots)} }

// Work waits for a slot, and works in it. It does not end when its client leaves.
func (p *Pool) Work() {
	p.queued.Add(1)
	p.slots <- struct{}{}
	begun := time.Now()
	<-time.After(takes)
	p.held.Add(int64(time.Since(begun)))
	p.done.Add(1)
	<-p.slots
	p.queued.Add(-1)
}

// Offer sends so many times what the service can do, half of it of class 0, which is SHEDDABLE, and half of class 1, which is CRITICAL.
// send reports whether its request was answered in time. After stop, which waits for all requests, none is sent.
func (p *Pool) Offer(times int, send func(class int) bool) (stop func()) {
	var clients sync.WaitGroup
	end := make(chan struct{})
	clients.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(times*capacity))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			case <-tick.C:
				clients.Go(func() {
					if send(i % 2) {
						p.served[i%2].Add(1)
					}
				})
			}
		}
	})
	return func() {
		close(end)
		clients.Wait()
	}
}

// settles is how long a protected service may take, after its backlog is done, until it serves what it can.
const settles = 15 * time.Second

// AwaitProtection waits until, in three seconds, 80 % of what the service can do is served, and at most half as much of SHEDDABLE as of
// CRITICAL. It returns an error if that does not happen within 15 s after the backlog of now is done. What the service can do follows
// from how long requests hold a slot: on a busy machine that is longer than they wish.
func (p *Pool) AwaitProtection() error {
	end := time.Now().Add(time.Duration(p.queued.Load())*takes/slots + settles)
	for {
		done, held, before := p.done.Load(), p.held.Load(), [2]int64{p.served[0].Load(), p.served[1].Load()}
		begun := time.Now()
		<-time.After(3 * time.Second)
		each := time.Duration(p.held.Load()-held) / time.Duration(max(1, p.done.Load()-done))
		can := slots * time.Since(begun).Seconds() / max(each, takes).Seconds()
		sheddable, critical := p.served[0].Load()-before[0], p.served[1].Load()-before[1]
		if float64(sheddable+critical) >= 0.8*can && sheddable <= critical/2 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d SHEDDABLE and %d CRITICAL served in 3 s, the service can do %.0f; %d wait there", sheddable, critical, can, p.queued.Load())
		}
	}
}
