package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// An outcome is how a call ended.
type outcome uint8

const (
	unsent   outcome = iota // the generator could not send it in time, or had too many calls open
	good                    // answered 2xx within the deadline
	late                    // answered 2xx after the deadline
	rejected                // answered 503 or 429
	reset                   // its connection was reset or closed without an answer
	lost                    // no answer in time
	failed                  // anything else
)

// A call is one call. Times are from the start of the run.
type call struct {
	at      time.Duration // the intended send
	sent    time.Duration // the actual one
	done    time.Duration // when the answer was read, or given up
	class   spillway.Criticality
	outcome outcome
}

// latency is what the client saw.
func (c *call) latency() time.Duration { return c.done - c.at }

// schedule returns the calls of stretches of load, as a Poisson process that depends on
// nothing but its arguments. Each class is as likely.
func schedule(seed uint64, load []stretch, capacity float64) []call {
	times, classes := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	var all []call
	from := 0.0
	for _, s := range load {
		end, rate := from+s.length.Seconds(), s.load*capacity
		for t := from + times.ExpFloat64()/rate; t < end; t += times.ExpFloat64() / rate {
			class := spillway.Sheddable + spillway.Criticality(classes.IntN(spillway.Criticalities))
			all = append(all, call{at: seconds(t), class: class})
		}
		from = end
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// maxOpenCalls bounds the calls that are open at once in the client.
const maxOpenCalls = 1 << 14

// A generator sends calls at their intended times, open loop: it never waits for an answer.
type generator struct {
	caller   caller
	deadline time.Duration
	start    time.Time
	open     atomic.Int64
	running  sync.WaitGroup
}

// run sends all calls, and returns when each has ended, or with the error of ctx.
func (g *generator) run(ctx context.Context, calls []call) error {
	g.start = time.Now()
	for i := range calls {
		if d := time.Until(g.start.Add(calls[i].at)); d > 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			break
		}
		g.send(ctx, &calls[i])
	}
	g.running.Wait() // each has a timeout
	return context.Cause(ctx)
}

func (g *generator) send(ctx context.Context, c *call) {
	c.sent = time.Since(g.start)
	if c.sent-c.at > g.deadline || g.open.Load() >= maxOpenCalls {
		return
	}
	g.open.Add(1)
	g.running.Go(func() {
		defer g.open.Add(-1)
		ctx, cancel := context.WithTimeout(ctx, g.deadline)
		defer cancel()
		c.outcome, _ = g.caller.call(ctx, c.class)
		c.done = time.Since(g.start)
		if c.outcome == good && c.latency() > g.deadline {
			c.outcome = late
		}
	})
}
