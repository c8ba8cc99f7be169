// Package pooltest has a service as overload makes it: it works on for clients that have left.
package pooltest

import (
	"fmt"
	"sync/atomic"
	"time"
)

const (
	slots = 2
	takes = 20 * time.Millisecond
)

// Capacity is how many requests per second a [Pool] can do on a machine that is not busy.
const Capacity = slots * int(time.Second/takes)

// A Pool is a service with two slots, in which a request takes 20 ms. Make one with [New].
type Pool struct {
	slots        chan struct{}
	queued, done atomic.Int64
	held         atomic.Int64 // time in slots
	served       [2]atomic.Int64
}

// New returns a Pool.
func New() *Pool { return &Pool{slots: make(chan struct{}, slots)} }

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

// Served counts a request that was answered in time: of class 0, which is SHEDDABLE, or of class 1, which is CRITICAL.
func (p *Pool) Served(class int) { p.served[class].Add(1) }

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
