// Package costdrill shows what a quota limits that counts processor time in place of calls.
//
// A child process with one processor serves two customers. The calls of one take 10 times as
// much processor time as the calls of the other. Both have the same quota: as many units per
// second as a fiftieth of the processor can do cheap calls. The drill sends the same calls
// at the same times to two such processes, one after the other:
//
//   - one whose quota counts calls, where the expensive customer can use 10 times its share;
//   - one that learns the cost of calls by customer (package cost) and charges it.
//
// Calls are counted after a warm-up, in which the second process learns. The processor time of a
// customer is the number of its answers times the work of a call, which is known.
package costdrill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
	"github.com/seed90641741/spillway/cost"
)

// The load. The expensive customer offers 20 times its share, which is two fifths of what the
// processor can do. The cheap one offers half of its share: net/http and the kernel add up to a
// third to the work of a cheap call, and calls come at random. A quota of requests admits half of
// what the expensive customer offers, which a busy machine can do.
const (
	service       = time.Millisecond // processor time of a cheap call
	share         = 20.0             // units per second
	expensiveRate = 40.0             // calls per second
	cheapRate     = 10.0             // calls per second
	warmUp        = 40 * time.Second
	measured      = 20 * time.Second
	timeout       = 2 * time.Second // of a call
	patience      = time.Minute     // for the learned costs, when all calls have ended
)

// A Result is what two customers used, with each way of counting.
type Result struct {
	// Share is the processor time that each customer may use, in milliseconds per second.
	Share    float64 `json:"share"`
	Requests Side    `json:"requests"` // the quota counts calls
	Learned  Side    `json:"learned"`  // the quota charges learned costs
}

// A Side is the result of one process.
type Side struct {
	// ExpensiveUse is the processor time that the expensive customer used, in milliseconds per
	// second.
	ExpensiveUse float64 `json:"expensive_use"`
	// CheapAnswered is the share of the cheap customer's calls that were answered.
	CheapAnswered float64 `json:"cheap_answered"`
	// Costs are the costs that the process has learned. They are empty if it did not learn.
	Costs []cost.KeyStats `json:"costs,omitempty"`
}

// Run runs the drill, and writes lines of progress.
func Run(ctx context.Context, seed uint64, progress io.Writer) (*Result, error) {
	cpus := process.Separate()
	defer cpus.End()
	r := &Result{Share: share * service.Seconds() * 1e3}
	rounds := 0
	for _, side := range []struct {
		name  string
		learn bool
		into  *Side
	}{{"[1/2] counting requests", false, &r.Requests}, {"[2/2] learned cost    ", true, &r.Learned}} {
		fmt.Fprintf(progress, "%s: %v, of which %v are measured\n", side.name, warmUp+measured, measured)
		p, err := process.StartBackend(ctx, &cpus, process.Backend{Kind: process.KindCPU, Service: service, Rounds: rounds, Quota: share, Learn: side.learn})
		if err != nil {
			return nil, err
		}
		rounds = p.Rounds
		err = run(ctx, p, seed, side.learn, side.into)
		p.Stop()
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// run sends calls to a process, and counts its answers. It reads the costs if the process learns.
func run(ctx context.Context, p *process.Process, seed uint64, learns bool, into *Side) error {
	ctx, unwatch := p.Watch(ctx)
	defer unwatch()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: timeout}
	var all sync.WaitGroup
	var expensive, cheap tally
	start := time.Now()
	all.Go(func() { expensive.offer(ctx, client, p.URL, process.ExpensiveCustomer, start, expensiveRate, seed) })
	all.Go(func() { cheap.offer(ctx, client, p.URL, process.CheapCustomer, start, cheapRate, seed+1) })
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	into.ExpensiveUse = float64(expensive.answered.Load()) * process.Expensive * service.Seconds() * 1e3 / measured.Seconds()
	into.CheapAnswered = float64(cheap.answered.Load()) / float64(max(cheap.sent.Load(), 1))
	if !learns {
		return nil
	}
	client.Timeout = patience
	text, err := get(ctx, client, p.URL+process.CostsPath[1:], "")
	if err != nil {
		return fmt.Errorf("asking for the learned costs: %w", err)
	}
	var stats cost.Stats
	if err := json.Unmarshal(text, &stats); err != nil {
		return err
	}
	for _, k := range stats.Keys {
		if k.Calls > 0 {
			into.Costs = append(into.Costs, k)
		}
	}
	return nil
}

// get makes a call of a customer, or asks for the learned costs where it is empty. It returns the
// answer, or an error if that is not 200.
func get(ctx context.Context, client *http.Client, url, customer string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if customer != "" {
		r.Header.Set(process.CustomerHeader, customer)
	}
	got, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = got.Body.Close() }() // it was read to its end, or an error says why not
	if got.StatusCode != http.StatusOK {
		return nil, errors.New(got.Status)
	}
	return io.ReadAll(io.LimitReader(got.Body, 1<<20))
}

// A tally counts the calls of a customer after the warm-up.
type tally struct{ sent, answered atomic.Int64 }

// offer sends calls at the times of a Poisson process, until the drill is over and all are answered.
func (t *tally) offer(ctx context.Context, client *http.Client, url, customer string, start time.Time, rate float64, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	var calls sync.WaitGroup
	defer calls.Wait()
	for at := time.Duration(0); at < warmUp+measured; {
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		select {
		case <-time.After(time.Until(start.Add(at))):
		case <-ctx.Done():
			return
		}
		counts := at >= warmUp
		calls.Go(func() {
			_, err := get(ctx, client, url, customer)
			if !counts {
				return
			}
			t.sent.Add(1)
			if err == nil {
				t.answered.Add(1)
			}
		})
	}
}
