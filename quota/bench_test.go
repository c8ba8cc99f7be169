package quota

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// bench has n known customers that share the capacity, which may be zero or unlimited.
func bench(b *testing.B, n int, capacity float64) (*Quota, []spillway.Call) {
	customers := make(map[string]Limit, n)
	calls := make([]spillway.Call, n)
	for i := range calls {
		calls[i].Customer = "customer-" + strconv.Itoa(i)
		customers[calls[i].Customer] = Limit{}
	}
	q := must(b, Config{Allocator: mustLocal(b, LocalConfig{Capacity: capacity, Customers: customers})})
	for _, call := range calls {
		_, _ = q.Admit(t0, call)
	}
	return q, calls
}

func run(b *testing.B, q *Quota, calls []spillway.Call) {
	now, i := t0, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		if ticket, err := q.Admit(now, calls[i%len(calls)]); err == nil {
			ticket.Settle(now, spillway.OutcomeServed)
		}
		i++
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			q, calls := bench(b, n, 1e9)
			run(b, q, calls)
		})
	}
}

func BenchmarkReject(b *testing.B) {
	q, calls := bench(b, 10, 1e-6)
	run(b, q, calls)
}

func BenchmarkAdmitParallel(b *testing.B) {
	q, calls := bench(b, 16, 1e9)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := t0
		for i := 0; pb.Next(); i++ {
			now = now.Add(time.Microsecond)
			if ticket, err := q.Admit(now, calls[i%16]); err == nil {
				ticket.Settle(now, spillway.OutcomeServed)
			}
		}
	})
}

// With all buckets of unlisted customers in use, a new customer checks only a few of them.
func BenchmarkUnlisted(b *testing.B) {
	q, _ := bench(b, 1, 1e9)
	calls := make([]spillway.Call, 4096)
	for i := range calls {
		calls[i].Customer = "unlisted-" + strconv.Itoa(i)
	}
	run(b, q, calls)
}

// Sharing happens once per interval, on the path of one call.
func BenchmarkShare(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			l := mustLocal(b, LocalConfig{Capacity: 1000})
			for i := range n {
				l.Lease(t0, Demand{Customer: strconv.Itoa(i), Wants: float64(i * 7919 % n)})
			}
			b.ReportAllocs()
			for b.Loop() {
				l.share(t0)
			}
		})
	}
}
