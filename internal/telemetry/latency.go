package telemetry

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The buckets of a latency histogram are octaves of nanoseconds, from 2^20 ns (about
// 1 ms) to 2^34 ns (about 17 s), so that finding one takes one instruction.
const (
	// FirstOctave is the logarithm to base 2 of the first bound, in nanoseconds.
	FirstOctave, lastOctave = 20, 34
	// Buckets is how many bounds a histogram has. One more bucket is without a bound.
	Buckets = lastOctave - FirstOctave + 1
)

// Bounds are the upper bounds of the buckets, in seconds.
var Bounds = bounds()

func bounds() (all [Buckets]float64) {
	for i := range all {
		all[i] = float64(uint64(1)<<(FirstOctave+i)) / 1e9
	}
	return all
}

// A LatencyHistogram counts latencies by bucket. The zero LatencyHistogram is ready for
// use. It is safe for concurrent use.
type LatencyHistogram struct {
	buckets [Buckets + 1]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

// Add counts a latency and returns its bucket.
func (h *LatencyHistogram) Add(d time.Duration) (bucket int) {
	bucket = min(max(0, bits.Len64(uint64(max(0, d-1)))-FirstOctave), Buckets) // a bound belongs to its bucket
	h.buckets[bucket].Add(1)
	h.sum.Add(int64(max(0, d)))
	return bucket
}

// Read returns the cumulative count at each bound, the count of all, and their sum.
func (h *LatencyHistogram) Read() (cumulative [Buckets]uint64, count uint64, sum time.Duration) {
	for i := range h.buckets {
		count += h.buckets[i].Load()
		if i < Buckets {
			cumulative[i] = count
		}
	}
	return cumulative, count, time.Duration(h.sum.Load())
}

// Role returns the index in [Roles] of the role whose latency events of a kind have, or -1
// if they have none.
func (k Kind) Role() int {
	switch k {
	case retryPolicy*Kind(codes) + Kind(Admitted), retryPolicy*Kind(codes) + Kind(Late):
		return RoleClient
	case shedPolicy*Kind(codes) + Kind(Admitted), shedPolicy*Kind(codes) + Kind(Late):
		return RoleServer
	default:
		return -1
	}
}

// Roles are the values of the label role.
var Roles = [...]string{RoleClient: "client", RoleServer: "server"}

// The roles: of calls to backends, and of requests that are served here.
const (
	RoleClient = iota
	RoleServer
)
