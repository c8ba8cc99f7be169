package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

const (
	closedWorkers  = 16 // enough that the backend always has a call to work on
	warmUp         = 300 * time.Millisecond
	capacitySlice  = 400 * time.Millisecond
	capacitySlices = 4
)

// A rate is what a closed loop found.
type rate struct {
	answered float64 // calls per second
	ended    float64 // the same, with the rejected ones
	work     float64 // mean processor time of a call, relative to the calibration; 0: unknown
}

// measureCapacity returns the capacity of the backend. The load is a closed loop, so the backend is
// always busy and has no backlog. The result is the median of several slices,
// since other load on the machine makes them differ.
func measureCapacity(ctx context.Context, p *process.Process, w load.Format) (rate, error) {
	if _, err := closedLoop(ctx, p, w, warmUp); err != nil {
		return rate{}, err
	}
	all := make([]rate, 0, capacitySlices)
	for range capacitySlices {
		one, err := closedLoop(ctx, p, w, capacitySlice)
		if err != nil {
			return rate{}, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b rate) int { return cmp.Compare(a.answered, b.answered) })
	low, high := all[(len(all)-1)/2], all[len(all)/2]
	return rate{(low.answered + high.answered) / 2, (low.ended + high.ended) / 2, (low.work + high.work) / 2}, nil
}

// closedLoop calls the backend for d with a few workers. Each worker sends its next call after the answer to its last one.
func closedLoop(ctx context.Context, p *process.Process, w load.Format, d time.Duration) (rate, error) {
	var (
		wg      sync.WaitGroup
		ended   atomic.Int64
		workers [closedWorkers][]record
		start   = time.Now()
	)
	loop, fail := context.WithCancelCause(ctx) // ends with the first failure of a worker
	defer fail(nil)
	for i := range closedWorkers {
		wg.Go(func() {
			// With its own connection, each worker gets its answer once
			// there is one.
			transport := w.Transport(1)
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for loop.Err() == nil && time.Since(start) < d {
				answer, err := w.Send(loop, client, p.URL)
				switch status := answer.Status; {
				case err != nil:
					fail(err)
				case status == http.StatusOK:
					workers[i] = append(workers[i], record{work: answer.Work})
				case status != http.StatusServiceUnavailable || !p.Sheds:
					fail(fmt.Errorf("status %d", status))
				}
				ended.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(start).Seconds()
	if ctx.Err() != nil {
		return rate{}, context.Cause(ctx)
	}
	if err := context.Cause(loop); err != nil {
		return rate{}, fmt.Errorf("measuring the capacity: %w", err)
	}
	if ended.Load() == 0 {
		return rate{}, errors.New("measuring the capacity: no answer in time")
	}
	answers := slices.Concat(workers[:]...)
	found := rate{answered: float64(len(answers)) / took, ended: float64(ended.Load()) / took}
	if slow := work(answers); slow != nil {
		found.work = *slow
	}
	return found, nil
}
