package fleet

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// A region is a service with its own board, and its way to the board of all regions.
type region struct {
	*service
	above []*Fleet // of each node
	board *Memory  // of all regions
	trip  time.Duration
	cut   bool

	next, due time.Duration
	phase     int
	by        *Fleet
	said      Said
	heard     Heard
	page      Publication
	levels    *Levels
}

// regions are regions in virtual time.
type regions []*region

// trips are the round trips of regions to the board of all regions.
var trips = []time.Duration{80 * ms, 140 * ms, 200 * ms}

const perRegion = 7 // tasks

// newRegions starts three regions, whose part of the demand is load's.
func newRegions(t *testing.T, load func(region int, at time.Duration) float64) regions {
	t.Helper()
	var all regions
	limits := quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: 1000}}}
	var shared *Memory
	for i, trip := range trips {
		s := newService(t, 0, Config{Tasks: len(trips) * perRegion, Limits: limits}, func(k int, at time.Duration) []stream {
			return []stream{{"mail", spillway.Critical, load(i, at) * zipf(k) / zipfOf(perRegion)}}
		})
		if shared == nil {
			shared = NewMemory(s.now)
		}
		r := &region{service: s, board: shared, trip: trip, next: time.Duration(i) * 170 * ms}
		for range perRegion {
			above, err := New(Config{
				Task: fmt.Sprint("region-", i), Tasks: len(trips), Limits: limits, Interval: 500 * ms, Hold: 5 * time.Second, Grace: 15 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			r.above = append(r.above, above)
			s.config.Above = above
			s.start()
		}
		all = append(all, r)
	}
	return all
}

func zipfOf(n int) (sum float64) {
	for k := range n {
		sum += zipf(k)
	}
	return sum
}

// run lets time pass in all regions.
func (all regions) run(end time.Duration) {
	for at := all[0].at; at < end; at += tick {
		for _, r := range all {
			r.exchange()
			r.service.run(at + tick)
		}
	}
}

// exchange takes the next step of the exchange of this region's leader with the board of all regions, and each way takes half of a
// round trip.
func (r *region) exchange() {
	if r.phase == 0 && r.at >= r.next {
		for i, n := range r.nodes {
			if n.fleet.Stats(r.now()).Leader {
				r.by, r.said, r.phase = r.above[i], r.above[i].say(r.now()), 1
			}
		}
		r.next, r.due = r.at+500*ms, r.at+r.trip/2
		return
	}
	if r.phase == 0 || r.at < r.due {
		return
	}
	if r.cut { // what was on the way is lost
		r.phase = 0
		return
	}
	r.due += r.trip / 2
	switch r.phase++; r.phase {
	case 2:
		r.heard, _ = r.board.Sync(context.Background(), r.said)
	case 3:
		if r.page, r.levels, _ = r.by.hear(r.now(), r.heard); r.levels == nil {
			r.phase = 0
		}
	case 4:
		if r.board.Publish(context.Background(), r.page) != nil {
			r.phase = 0
		}
	case 5:
		r.by.took(r.now(), r.levels)
		r.phase = 0
	}
}

// admitted is what all regions admitted from a to b, per second.
func (all regions) admitted(a, b time.Duration) (sum float64) {
	for _, r := range all {
		sum += r.service.admitted(a, b)
	}
	return sum
}

// most is the most that was admitted in any ten seconds.
func (all regions) most(a, b time.Duration) (most float64) {
	for ; a+10*time.Second <= b; a += window {
		most = max(most, all.admitted(a, a+10*time.Second))
	}
	return most
}

// parts divide demand among regions.
var parts = []float64{0.6, 0.3, 0.1}

// Three regions, 80 to 200 ms from the board that they share, hold one limit.
func TestRegions(t *testing.T) {
	for name, load := range map[string]func(int, time.Duration) float64{
		"even":   func(int, time.Duration) float64 { return 2000. / 3 },
		"skewed": func(i int, _ time.Duration) float64 { return 2000 * parts[i] },
		"moving": func(i int, at time.Duration) float64 { return 2000 * parts[(i+int(at/(10*time.Second)))%3] },
		"low":    func(i int, _ time.Duration) float64 { return 800 * parts[i] },
	} {
		t.Run(name, func(t *testing.T) {
			all := newRegions(t, load)
			all.run(64 * time.Second)
			least, most := 0.95, 1.05
			if name == "low" {
				least, most = 0.76, 0.84
			}
			within(t, "admitted", all.admitted(4*time.Second, 64*time.Second)/1000, least, most)
			within(t, "most in ten seconds", all.most(4*time.Second, 64*time.Second)/1000, least, most)
		})
	}
}

// A region is cut off for a minute: within 1.35 of the limit meanwhile, and within 5 % from 10 s after on.
func TestRegionCutOff(t *testing.T) {
	for cut := range trips {
		all := newRegions(t, func(i int, _ time.Duration) float64 { return 3000 * parts[i] })
		all.run(20 * time.Second)
		all[cut].cut = true
		all.run(80 * time.Second)
		all[cut].cut = false
		all.run(110 * time.Second)
		within(t, "until Grace", all.admitted(20*time.Second, 35*time.Second)/1000, 0.95, 1.08)
		within(t, "while it is cut off", all.admitted(20*time.Second, 80*time.Second)/1000, 0.9, 1.35)
		within(t, "most in ten seconds", all.most(20*time.Second, 80*time.Second)/1000, 0.9, 1.35)
		within(t, "meanwhile in this region", all[cut].service.admitted(60*time.Second, 80*time.Second)/1000, 0.25, 0.36)
		within(t, "healed", all.admitted(90*time.Second, 110*time.Second)/1000, 0.95, 1.05)
	}
}

// RunRegion syncs the region while its task leads.
func TestRunRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Tasks: 3, Limits: quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: 1000}}}}
		shared := NewMemory(time.Now)
		ctx, stop := context.WithCancel(t.Context())
		var all []*Fleet
		for i := range 3 {
			a := c
			a.Task, a.Interval = fmt.Sprint("region-", i), 500*ms
			above, err := New(a)
			if err != nil {
				t.Fatal(err)
			}
			own := c
			own.Above = above
			f, err := New(own)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
			go RunRegion(ctx, f, NewMemory(time.Now), shared)
		}
		time.Sleep(5 * time.Second)
		for _, f := range all {
			if s := f.above().Stats(time.Now()); s.Tasks != 3 || s.ErrorsTotal > 0 {
				t.Errorf("a region knows %d regions: %+v", s.Tasks, s)
			}
		}
		stop()
		synctest.Wait()
	})
}
