package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestFunctionsAgreeWithPackageMath(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		x := math.Exp(r.Float64()*80 - 40)
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 1e-15*max(1, math.Abs(want)) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
		x = r.Float64()*80 - 40
		if got, want := exp(x), math.Exp(x); math.Abs(got/want-1) > 2e-14 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if ln(1) != 0 || exp(0) != 1 {
		t.Errorf("ln(1) = %v, exp(0) = %v", ln(1), exp(0))
	}
}

func TestDistributionsHaveTheirMeanAndText(t *testing.T) {
	const n = 200_000
	for text, within := range map[string]float64{
		"10ms": 0, "exponential 10ms": 0.01, "uniform 5ms 15ms": 0.01, "lognormal 10ms 0.8": 0.01,
		"pareto 10ms 2.5": 0.03, "bimodal 1ms 100ms 0.05": 0.03, "0s": 0,
	} {
		d, err := ParseDist(text)
		if err != nil {
			t.Fatal(err)
		}
		if d.String() != text {
			t.Errorf("%q is written as %q", text, d)
		}
		r, sum := newStream(1, 1), 0.0
		for range n {
			v := d.draw(r)
			if v < 0 {
				t.Fatalf("%v: drew %d", d, v)
			}
			sum += float64(v)
		}
		if got, want := sum/n, float64(d.Mean()); math.Abs(got-want) > within*want {
			t.Errorf("%v: mean %v, want %v", d, time.Duration(got), d.Mean())
		}
	}
}

func FuzzParseDist(f *testing.F) {
	for _, s := range []string{"", "10ms", "exponential 1s", "uniform 2s 1s", "pareto 1s NaN", "lognormal 1s 1e9", "bimodal 1s 2s 0.5", "constant"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDist(s)
		if err != nil {
			return
		}
		if again, err := ParseDist(d.String()); err != nil || again != d {
			t.Errorf("%q reads as %v, which reads as %v, %v", s, d, again, err)
		}
		if v := d.draw(newStream(1, 1)); v < 0 || v > int64(maxTime) {
			t.Errorf("%v: drew %d", d, v)
		}
	})
}

// A simple sort is the model of the heap: by time, and of the same time in the
// order of pushes.
func TestAgendaIsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var a agenda
	var model []event
	var last event
	for range 50_000 {
		if r.IntN(5) < 3 || len(model) == 0 {
			k := []kind{send, expire}[r.IntN(2)]
			a.push(last.at+r.Int64N(20), k, ref{id: r.Uint32()})
			model = append(model, event{key: a.seq<<8 | uint64(k)})
			continue
		}
		e := a.pop()
		if !last.before(&e) {
			t.Fatalf("%+v came after %+v", e, last)
		}
		last = e
		i := slices.IndexFunc(model, func(m event) bool { return m.key == e.key })
		if i < 0 {
			t.Fatalf("%+v came twice, or was never pushed", e)
		}
		model = slices.Delete(model, i, i+1)
		if left := len(a.heap) + a.timeouts.n; len(model) != left {
			t.Fatalf("%d left, want %d", left, len(model))
		}
		if len(model) > 300 {
			for range 250 {
				last = a.pop()
				model = slices.DeleteFunc(model, func(m event) bool { return m.key == last.key })
			}
		}
	}
}

func TestQueueIsARing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	var q queue[int]
	var model []int
	for i := range 20_000 {
		switch k := r.IntN(7); {
		case k < 4 || len(model) == 0:
			q.push(i)
			model = append(model, i)
		case k < 6:
			if got := q.oldest(); got != model[0] {
				t.Fatalf("oldest is %d, want %d", got, model[0])
			}
			model = model[1:]
		default:
			if got := q.newest(); got != model[len(model)-1] {
				t.Fatalf("newest is %d, want %d", got, model[len(model)-1])
			}
			model = model[:len(model)-1]
		}
		if q.n != len(model) {
			t.Fatalf("%d in the queue, want %d", q.n, len(model))
		}
	}
}

func TestHistogramIsFine(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	h := new(histogram)
	if h.quantile(0.5) != -1 {
		t.Error("there is a median of nothing")
	}
	var all []int64
	for range 20_000 {
		v := int64(math.Exp(r.Float64()*14) * 1e5)
		h.add(v)
		all = append(all, v)
	}
	slices.SortFunc(all, cmp.Compare)
	for _, q := range []float64{0.001, 0.01, 0.5, 0.9, 0.99, 1} {
		want := float64(all[int(math.Ceil(q*float64(len(all))))-1])
		if got := float64(h.quantile(q)); math.Abs(got/want-1) > 1.0/64 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
