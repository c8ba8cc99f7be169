package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

const (
	closedWorkers = 16 // enough that the server always has a call
	warmUp        = 500 * time.Millisecond
	slice         = 500 * time.Millisecond
	slicesOf      = 4
)

// A pace is what a server does when it always has calls and never many.
type pace struct {
	perSecond float64
	cpu       time.Duration // of the server, for each call
	others    int64         // calls that were served where rejections are measured, or lost
}

// capacity measures a new server with nothing before the handler, and sets the rounds
// by which others do the same work.
func (b *backendCommand) capacity(ctx context.Context, cpus *machine.Affinity) (pace, error) {
	bare := *b
	bare.Front, bare.Reject = frontNone, false
	p, err := bare.start(ctx, cpus, nil)
	if err != nil {
		return pace{}, err
	}
	defer p.stop()
	b.Rounds = p.rounds
	return p.pace(ctx, good)
}

// rejection measures what it costs the front to reject a call.
func (b *backendCommand) rejection(ctx context.Context, cpus *machine.Affinity, f *front) (time.Duration, error) {
	closed := *b
	closed.Front, closed.Reject, closed.SlowAccept = f.name, true, 0
	p, err := closed.start(ctx, cpus, nil)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	want := rejected
	if f.paced {
		want = reset
	}
	rate, err := p.pace(ctx, want)
	return rate.cpu, err
}

// mostOthers is the share of calls that may end otherwise. Where rejections are measured the first
// ones are served: the server has not measured its load yet.
const mostOthers = 0.01

// rejectionTimeout is that of calls which are to be rejected: about as short as in a trial. A grpc
// server keeps a timer of each call that is rejected at its head, and [spillgrpc.Server] rejects
// fewer there if these last for long.
const rejectionTimeout = time.Second

// pace returns the medians of several slices: other processes make them differ. Other
// outcomes than the given one are an error.
func (p *process) pace(ctx context.Context, want outcome) (pace, error) {
	ctx, unwatch := p.watch(ctx)
	defer unwatch()
	timeout := startTimeout
	if want != good {
		timeout = rejectionTimeout
	}
	if _, err := p.closedLoop(ctx, warmUp, timeout, want); err != nil {
		return pace{}, err
	}
	rates, costs := make([]float64, slicesOf), make([]time.Duration, slicesOf)
	for i := range slicesOf {
		one, err := p.closedLoop(ctx, slice, timeout, want)
		if err != nil {
			return pace{}, err
		}
		if n := one.perSecond * slice.Seconds(); float64(one.others) > mostOthers*n {
			return pace{}, fmt.Errorf("measuring the server: %d calls ended in another way than %.0f others", one.others, n)
		}
		rates[i], costs[i] = one.perSecond, one.cpu
	}
	slices.Sort(rates)
	slices.Sort(costs)
	return pace{perSecond: (rates[slicesOf/2-1] + rates[slicesOf/2]) / 2, cpu: (costs[slicesOf/2-1] + costs[slicesOf/2]) / 2}, nil
}

// closedLoop calls the server for d with a few workers. Each sends when its last call
// was answered, or within timeout. Outcomes other than good, lost and the given one are an error.
func (p *process) closedLoop(ctx context.Context, d, timeout time.Duration, want outcome) (pace, error) {
	var workers sync.WaitGroup
	var answered, others atomic.Int64
	var failure atomic.Pointer[error]
	start, before := time.Now(), p.used()
	for range closedWorkers {
		workers.Go(func() {
			c, err := p.caller(1, false)
			if err != nil {
				failure.Store(&err)
				return
			}
			defer c.close()
			for ctx.Err() == nil && time.Since(start) < d {
				switch o, err := callFor(ctx, c, timeout); o {
				case want:
					answered.Add(1)
				case good, lost:
					others.Add(1)
				default:
					failure.Store(new(cmp.Or(err, errors.New("a call was rejected"))))
					return
				}
			}
		})
	}
	workers.Wait()
	took, used := time.Since(start).Seconds(), p.used()-before
	if ctx.Err() != nil {
		return pace{}, context.Cause(ctx)
	}
	if err := failure.Load(); err != nil {
		return pace{}, fmt.Errorf("measuring the server: %w", *err)
	}
	n := answered.Load()
	if n+others.Load() == 0 {
		return pace{}, errors.New("measuring the server: no answer in time")
	}
	return pace{float64(n) / took, used / time.Duration(max(1, n)), others.Load()}, nil
}

// callFor makes a call that may take that long.
func callFor(ctx context.Context, c caller, timeout time.Duration) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.call(ctx, spillway.Critical)
}
