package main

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A protocol is how clients and the upstream talk.
type protocol struct {
	title string
	http2 bool
	serve func() (server, error)
	// dial returns a client of an address that has one connection.
	dial func(ctx context.Context, address string) (client, error)
	// connections and streams, that is requests at once on each, for throughput.
	connections, streams int
}

var protocols = map[string]protocol{
	"http1": {"HTTP/1.1, GET", false, serveHTTP1, dialHTTP1, 32, 1},
	"grpc":  {"gRPC (h2c), unary", true, serveGRPC, dialGRPC, 4, 8},
}

// A server is one that runs.
type server interface {
	io.Closer
	Addr() net.Addr
}

// A client makes requests. It is used by as many goroutines as its protocol has
// streams.
type client interface {
	io.Closer
	// do makes one request and reports whether it was served.
	do() (served bool, err error)
}

// A sample is what was measured in a slice.
type sample struct {
	served, rejected int64
	took             time.Duration
	latencies        []time.Duration // of those served, in order
}

// quantile returns a latency in microseconds, 0 if absent.
func (s *sample) quantile(q float64) float64 {
	if len(s.latencies) == 0 {
		return 0
	}
	return float64(s.latencies[int(q*float64(len(s.latencies)-1))].Nanoseconds()) / 1000
}

// flood sends as many requests as are answered.
func flood(ctx context.Context, p protocol, address string, d time.Duration) (sample, error) {
	var served, rejected atomic.Int64
	start := time.Now()
	err := each(ctx, p, address, p.connections, p.streams, func(_ int, c client) error {
		for ctx.Err() == nil && time.Since(start) < d {
			ok, err := c.do()
			if err != nil {
				return err
			}
			if ok {
				served.Add(1)
			} else {
				rejected.Add(1)
			}
		}
		return ctx.Err()
	})
	return sample{served: served.Load(), rejected: rejected.Load(), took: time.Since(start)}, err
}

// paced is how many connections share a rate.
const paced = 20

// pace sends requests at a rate. Latency counts from the send.
func pace(ctx context.Context, p protocol, address string, d time.Duration, rate float64) (sample, error) {
	var mu sync.Mutex
	var all sample
	start := time.Now()
	step := time.Duration(paced / rate * float64(time.Second))
	err := each(ctx, p, address, paced, 1, func(i int, c client) error {
		var own []time.Duration
		rejected := int64(0)
		for at := time.Duration(i) * step / paced; at < d && ctx.Err() == nil; at += step {
			select {
			case <-time.After(time.Until(start.Add(at))):
			case <-ctx.Done():
			}
			begun := time.Now()
			ok, err := c.do()
			if err != nil {
				return err
			}
			if ok {
				own = append(own, time.Since(begun))
			} else {
				rejected++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all.latencies, all.rejected = append(all.latencies, own...), all.rejected+rejected
		return ctx.Err()
	})
	slices.Sort(all.latencies)
	all.served, all.took = int64(len(all.latencies)), time.Since(start)
	return all, err
}

// each runs f for each stream of each connection, and returns the first error.
func each(ctx context.Context, p protocol, address string, connections, streams int, f func(int, client) error) error {
	var all sync.WaitGroup
	errs := make(chan error, connections*streams)
	for i := range connections {
		c, err := p.dial(ctx, address)
		if err != nil {
			errs <- err
			break
		}
		defer c.Close()
		for range streams {
			all.Go(func() {
				if err := f(i, c); err != nil {
					errs <- err
				}
			})
		}
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}
