package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/telemetry"
)

func TestBucketsMeet(t *testing.T) {
	for i := range bucketCount - 1 {
		if got := bucketOf(lowerBound(i)); got != i {
			t.Errorf("%v, where bucket %d begins, is in %d", lowerBound(i), i, got)
		}
		if got := bucketOf(lowerBound(i+1) - 1); got != i {
			t.Errorf("%v, where bucket %d ends, is in %d", lowerBound(i+1)-1, i, got)
		}
		if width := float64(lowerBound(i+1)-lowerBound(i)) / float64(lowerBound(i)); i > 0 && width > 0.125 {
			t.Errorf("bucket %d is %.3f of its bound wide", i, width)
		}
	}
	for d, want := range map[time.Duration]int{-1: 0, 0: 0, math.MaxInt64: bucketCount - 1, time.Hour: bucketCount - 1} {
		if got := bucketOf(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}

// TestQuantiles compares with what all values sorted say.
func TestQuantiles(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var h Histogram
		var before, c Counts
		h.Add(time.Second)
		h.Read(&before)
		values := make([]time.Duration, 1+r.IntN(3000))
		sum := time.Duration(0)
		for i := range values {
			values[i] = time.Duration(math.Exp(10+10*r.Float64()) * 10)
			h.Add(values[i])
			sum += values[i]
		}
		slices.Sort(values)
		h.Read(&c)
		d := c.Since(&before)
		if d.Total() != uint64(len(values)) || d.Sum() != sum {
			t.Errorf("seed %d: %d values, %v, want %d, %v", seed, d.Total(), d.Sum(), len(values), sum)
		}
		for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			got, want := d.Quantile(q), values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
			if ratio := float64(got) / float64(want); ratio < 1/1.13 || ratio > 1.13 {
				t.Errorf("seed %d: quantile %v of %d is %v, want %v", seed, q, len(values), got, want)
			}
		}
		for octave := telemetry.FirstOctave; octave <= telemetry.FirstOctave+telemetry.Buckets-1; octave++ {
			want, _ := slices.BinarySearch(values, 1<<octave)
			if got := d.Below(octave); got != uint64(want) {
				t.Errorf("seed %d: %d are below 2^%d, want %d", seed, got, octave, want)
			}
		}
	}
	if new(Counts).Quantile(0.5) != 0 || new(Counts).Typical() != 0 {
		t.Error("nothing has a quantile")
	}
}

func TestTypicalIsExactWhereAllAreTheSame(t *testing.T) {
	var h Histogram
	var c Counts
	for range 99 {
		h.Add(500 * time.Millisecond)
	}
	h.Add(time.Hour)
	h.Read(&c)
	if got := c.Typical(); got != 500*time.Millisecond {
		t.Errorf("%v", got)
	}
}
