// Package histogram counts durations in buckets of at most an eighth of their lower bound.
package histogram

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Buckets are eighths of octaves of nanoseconds, from about a microsecond to about half an
// hour. Shorter times are in the first bucket, longer times in the last.
const (
	lowestOctave  = 10
	highestOctave = 40
	perOctave     = 8
	bucketCount   = (highestOctave-lowestOctave+1)*perOctave + 1
)

// A Histogram counts durations. The zero Histogram is ready for use. It is safe for concurrent
// use, takes no lock and allocates nothing.
type Histogram struct {
	buckets [bucketCount]atomic.Uint64
	sums    [bucketCount]atomic.Int64 // of what is in each, in nanoseconds
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	i := bucketOf(d)
	h.buckets[i].Add(1)
	h.sums[i].Add(int64(max(d, 0)))
}

// bucketOf returns the bucket of d: 0, or the octave and the three bits that follow
// its first.
func bucketOf(d time.Duration) int {
	if d < 1<<lowestOctave {
		return 0
	}
	octave := bits.Len64(uint64(d)) - 1
	if octave > highestOctave {
		return bucketCount - 1
	}
	return 1 + (octave-lowestOctave)*perOctave + int(d>>(octave-3))&(perOctave-1)
}

// lowerBound returns where a bucket begins, and the one before it ends.
func lowerBound(bucket int) time.Duration {
	if bucket == 0 {
		return 0
	}
	octave, eighth := (bucket-1)/perOctave+lowestOctave, (bucket-1)%perOctave
	return time.Duration(perOctave+eighth) << (octave - 3)
}

// Counts is what a Histogram has counted up to some time.
type Counts struct {
	buckets [bucketCount]uint64
	sums    [bucketCount]time.Duration
}

// Read sets into to what was counted so far.
func (h *Histogram) Read(into *Counts) {
	for i := range h.buckets {
		into.buckets[i], into.sums[i] = h.buckets[i].Load(), time.Duration(h.sums[i].Load())
	}
}

// Since returns what was counted after earlier.
func (c *Counts) Since(earlier *Counts) (d Counts) {
	for i := range c.buckets {
		d.buckets[i], d.sums[i] = c.buckets[i]-earlier.buckets[i], c.sums[i]-earlier.sums[i]
	}
	return d
}

// A Cell is how many durations are in one bucket.
type Cell struct {
	bucket uint8
	n      uint32
}

const _ = uint8(bucketCount - 1) // it fits

// AppendCells appends the buckets with a count to cells. Counts above 2^32-1 are lowered to it.
func (c *Counts) AppendCells(cells []Cell) []Cell {
	for i, n := range c.buckets {
		if n > 0 {
			cells = append(cells, Cell{uint8(i), uint32(min(n, math.MaxUint32))})
		}
	}
	return cells
}

// AddCells adds counts, without their sums.
func (c *Counts) AddCells(cells []Cell) {
	for _, x := range cells {
		c.buckets[x.bucket] += uint64(x.n)
	}
}

// Total returns how many were counted.
func (c *Counts) Total() uint64 { return sum(c.buckets[:]) }

// Sum returns the sum of all.
func (c *Counts) Sum() time.Duration { return sum(c.sums[:]) }

// Typical returns the mean of the bucket of the median: it is exact if all values are equal.
func (c *Counts) Typical() time.Duration {
	half := c.Total() / 2
	for i, v := range c.buckets {
		if v > half {
			return c.sums[i] / time.Duration(v)
		}
		half -= v
	}
	return 0
}

// Below returns the number of values below the bound of an octave.
func (c *Counts) Below(octave int) uint64 { return sum(c.buckets[:1+(octave-lowestOctave)*perOctave]) }

// Above returns the number of values in the bucket of d or above it.
func (c *Counts) Above(d time.Duration) uint64 { return sum(c.buckets[bucketOf(d):]) }

func sum[N uint64 | time.Duration](values []N) (n N) {
	for _, v := range values {
		n += v
	}
	return n
}

// Quantile returns the quantile q, with the values in a bucket spread evenly. It is 0 without
// values.
func (c *Counts) Quantile(q float64) time.Duration {
	rank := q * float64(c.Total())
	for i, v := range c.buckets {
		if n := float64(v); v > 0 && n >= rank {
			from, to := lowerBound(i), lowerBound(i+1)
			return from + time.Duration(float64(to-from)*rank/n)
		}
		rank -= float64(v)
	}
	return 0
}
