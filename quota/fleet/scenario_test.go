package fleet

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

func TestSkewedDemand(t *testing.T) {
	for _, row := range []struct{ demand, least, most, rejected float64 }{
		{0.8, 0.75, 0.85, 0},
		{1.5, 0.97, 1.005, 1},
		{3, 0.97, 1.005, 1},
	} {
		s := newService(t, 20, mail(1000), skewed(1000*row.demand))
		s.run(12 * time.Second)
		c := s.sum(2*time.Second, 12*time.Second, nil)
		within(t, "admitted", total(c.admitted)/1000, row.least, row.most)
		within(t, "rejected", total(c.rejected)/1000/row.demand, 0, row.rejected)
		// From the start on, burst included, no more than one bucket for all would admit. The window
		// above begins while that burst is still being admitted, hence up to 1.005 in it.
		within(t, "from the start, of what one bucket admits",
			12*s.admitted(0, 12*time.Second)/min(12000*row.demand, 12000+1000), 0.95, 1.02-0.02*row.rejected)
	}
}

// A customer with a demand of a third of its limit is in no levels, and only the tasks that it comes to most
// report it. At three times its limit it is held to it, and after that forgotten again.
func TestQuietCustomer(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		demand := 300.
		if at >= 8*time.Second && at < 16*time.Second {
			demand = 3000
		}
		return []stream{{"mail", spillway.Critical, demand * zipf(i)}}
	})
	reported := func() (n int) {
		for _, x := range s.nodes {
			n += x.fleet.Stats(s.now()).Customers
		}
		return n
	}
	s.run(8 * time.Second)
	_, leveled := s.nodes[0].fleet.Level("mail")
	if n := reported(); leveled || n < 1 || n > 5 {
		t.Errorf("%d of 20 tasks report a customer below half of its limit, want 1 to 5; has a level: %v", n, leveled)
	}
	within(t, "rejected", total(s.sum(2*time.Second, 8*time.Second, nil).rejected), 0, 0)
	s.run(16 * time.Second)
	if n := reported(); n != 20 {
		t.Errorf("%d of 20 tasks report a customer above its limit, want all", n)
	}
	within(t, "of what one bucket admits", s.admitted(8*time.Second, 16*time.Second)*8/9000, 0.95, 1.02)
	within(t, "after the burst", s.admitted(12*time.Second, 16*time.Second)/1000, 0.97, 1.02)
	s.run(24 * time.Second)
	if _, leveled := s.nodes[0].fleet.Level("mail"); leveled || reported() > 5 {
		t.Errorf("%d tasks report the customer 8 s later; has a level: %v", reported(), leveled)
	}
	within(t, "rejected after that", total(s.sum(18*time.Second, 24*time.Second, nil).rejected), 0, 0)
}

// The skew moves to other tasks every 5 seconds.
func TestMovingSkew(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		return []stream{{"mail", spillway.Critical, 2000 * zipf((i+7*int(at/(5*time.Second)))%20)}}
	})
	s.run(42 * time.Second)
	within(t, "admitted", s.admitted(2*time.Second, 42*time.Second)/1000, 0.99, 1.01)
	least, most := s.extremes(2*time.Second, 42*time.Second)
	within(t, "least second", least/1000, 0.8, 1)
	within(t, "most second", most/1000, 1, 1.25)
}

// All demand moves from one half of the tasks to the other.
func TestAllDemandMoves(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		if (i < 10) == (at < 5*time.Second) {
			return []stream{{"mail", spillway.Critical, 150}}
		}
		return nil
	})
	s.run(10 * time.Second)
	other := func(i int) bool { return i >= 10 }
	at := 5 * time.Second
	for at < 10*time.Second && total(s.sum(at, at+window, other).admitted) < 950 {
		at += window
	}
	within(t, "milliseconds to 95 %", float64((at-5*time.Second)/ms), 0, 700)
	within(t, "from then on", s.admitted(5*time.Second, 10*time.Second)/1000, 0.97, 1.03)
	_, most := s.extremes(3*time.Second, 10*time.Second)
	within(t, "most second", most/1000, 0.97, 1.25)
}

// CRITICAL in ten tasks and SHEDDABLE in ten others are twice the limit together.
func TestClassesOverTasks(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, _ time.Duration) []stream {
		if i < 10 {
			return []stream{{"mail", spillway.Critical, 70}, {"mail", spillway.CriticalPlus, 20}}
		}
		return []stream{{"mail", spillway.Sheddable, 100}, {"mail", spillway.SheddablePlus, 30}}
	})
	s.run(13 * time.Second)
	c := s.sum(3*time.Second, 13*time.Second, nil)
	for class, band := range [][2]float64{{0, 0.005}, {0.2, 0.4}, {0.995, 1}, {0.995, 1}} {
		within(t, (spillway.Sheddable + spillway.Criticality(class)).String(),
			c.admitted[class]/(c.admitted[class]+c.rejected[class]), band[0], band[1])
	}
	within(t, "admitted", total(c.admitted)/1000, 0.95, 1.005)
}

// The demand of CRITICAL alone equals the limit.
func TestNothingIsLeftForLowerClasses(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, _ time.Duration) []stream {
		if i < 10 {
			return []stream{{"mail", spillway.Critical, 100}}
		}
		return []stream{{"mail", spillway.Sheddable, 100}}
	})
	s.run(13 * time.Second)
	c := s.sum(3*time.Second, 13*time.Second, nil)
	within(t, "CRITICAL", c.admitted[2]/(c.admitted[2]+c.rejected[2]), 0.975, 1)
	within(t, "SHEDDABLE", c.admitted[0]/(c.admitted[0]+c.rejected[0]), 0, 0.005)
}

// 100 customers of weights 1 to 4 share a capacity.
func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := Config{Tasks: 20, Limits: quota.LocalConfig{Capacity: 2000, Customers: map[string]quota.Limit{}}}
	type demand struct {
		weight, rate float64
		home         int
	}
	all := map[string]demand{}
	for i := range 100 {
		d := demand{float64(1 + i%4), []float64{5, 20, 60, 200}[r.IntN(4)], r.IntN(20)}
		all[strconv.Itoa(i)] = d
		c.Limits.Customers[strconv.Itoa(i)] = quota.Limit{Weight: d.weight}
	}
	var streams [20][]stream // half of it at one task, the rest at five others
	for i := range 100 {
		d := all[strconv.Itoa(i)]
		for k, part := range []float64{0.5, 0.1, 0.1, 0.1, 0.1, 0.1} {
			n := (d.home + k) % 20
			streams[n] = append(streams[n], stream{strconv.Itoa(i), spillway.Critical, d.rate * part})
		}
	}
	s := newService(t, 20, c, func(i int, _ time.Duration) []stream { return streams[i] })
	s.since = 4 * time.Second
	s.run(14 * time.Second)
	level := maxMin(2000, all, func(d demand) (float64, float64) { return d.rate, d.weight })
	var cut []float64
	least := 1.
	for name, d := range all {
		got := total(s.customer[name].admitted) / 10
		if d.rate > 1.05*level*d.weight {
			cut = append(cut, got/d.weight)
		}
		least = min(least, got/min(d.rate, level*d.weight))
	}
	t.Logf("%d are cut at %.3g per weight; least %.3g of what is due", len(cut), level, least)
	within(t, "Jain", jain(cut), 0.999, 1)
	within(t, "admitted", s.admitted(4*time.Second, 14*time.Second)/2000, 0.95, 1.005)
}

// maxMin finds the level of weighted max-min by bisection.
func maxMin[T any](capacity float64, all map[string]T, of func(T) (wants, weight float64)) float64 {
	low, high := 0., capacity
	for range 100 {
		level, sum := (low+high)/2, 0.
		for _, d := range all {
			wants, weight := of(d)
			sum += min(wants, level*weight)
		}
		if sum < capacity {
			low = level
		} else {
			high = level
		}
	}
	return low
}

func jain(x []float64) float64 {
	sum, squares := 0., 0.
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}
