package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

const (
	closedWorkers  = 16 // enough that the backend always has a call to work on
	warmUp         = 500 * time.Millisecond
	capacitySlice  = 500 * time.Millisecond
	capacitySlices = 4
)

// measureCapacity returns the capacity of the backend in calls per second. The load is a
// closed loop, so the backend is always busy and has no backlog. The result is the median
// of several slices, since other load on the machine makes them differ.
func measureCapacity(ctx context.Context, p *process.Process, w wire) (float64, error) {
	if _, err := closedLoop(ctx, p, w, warmUp); err != nil {
		return 0, err
	}
	rates := make([]float64, 0, capacitySlices)
	for range capacitySlices {
		rate, err := closedLoop(ctx, p, w, capacitySlice)
		if err != nil {
			return 0, err
		}
		rates = append(rates, rate)
	}
	slices.Sort(rates)
	return (rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2, nil
}

// closedLoop calls the backend for d with a few workers and returns the answers per
// second. Each worker sends its next call after the answer to its last one.
func closedLoop(ctx context.Context, p *process.Process, w wire, d time.Duration) (float64, error) {
	var (
		wg       sync.WaitGroup
		answered atomic.Int64
		start    = time.Now()
	)
	loop, fail := context.WithCancelCause(ctx) // ends with the first failure of a worker
	defer fail(nil)
	for range closedWorkers {
		wg.Go(func() {
			// With its own connection, each worker gets its answer once
			// there is one.
			transport := w.transport(1)
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for loop.Err() == nil && time.Since(start) < d {
				status, err := w.send(loop, client, p.URL)
				switch {
				case err != nil:
					fail(err)
				case status == http.StatusOK:
					answered.Add(1)
				case status != http.StatusServiceUnavailable || !p.Sheds:
					fail(fmt.Errorf("status %d", status))
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start).Seconds()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err := context.Cause(loop); err != nil {
		return 0, fmt.Errorf("measuring the capacity: %w", err)
	}
	if answered.Load() == 0 {
		return 0, errors.New("measuring the capacity: no answer in time")
	}
	return float64(answered.Load()) / took, nil
}
