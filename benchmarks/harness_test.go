package benchmarks

import (
	"testing"
	"time"
)

// An impl is one way to do what a subject is about.
type impl[T any] struct {
	name string
	make func(tb testing.TB) T
}

// bench runs the loop of a benchmark for each of impls, with a new one each.
func bench[T any](b *testing.B, impls []impl[T], loop func(b *testing.B, t T)) {
	for _, i := range impls {
		b.Run("impl="+i.name, func(b *testing.B) {
			it := i.make(b)
			b.ReportAllocs()
			loop(b, it)
		})
	}
}

// each runs the check named what for each of impls, with a new one each.
func each[T any](t *testing.T, what string, impls []impl[T], check func(t *testing.T, it T)) {
	t.Helper()
	for _, i := range impls {
		t.Run(what+"/"+i.name, func(t *testing.T) { check(t, i.make(t)) })
	}
}

// must returns what a constructor made, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// givenTime returns what the time is for a policy of several that share one reading of the
// clock: a microsecond more for each decision.
func givenTime() func() time.Time {
	now := time.Now()
	return func() time.Time {
		now = now.Add(time.Microsecond)
		return now
	}
}
