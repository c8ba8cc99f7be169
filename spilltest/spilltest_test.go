package spilltest_test

import (
	"io"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
	"github.com/seed90641741/spillway/throttle"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// overloaded returns a throttle that rejects.
func overloaded() *throttle.Throttle {
	t := must(throttle.New(throttle.Config{Rand: func() float64 { return 0 }}))
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for range 2000 {
		if ticket, err := t.Admit(now, spillway.Call{}); err == nil {
			ticket.Settle(now, spillway.OutcomeOverloaded)
		}
		now = now.Add(time.Millisecond)
	}
	return t
}

func TestGates(t *testing.T) {
	for name, open := range map[string]func() spillway.Gate{
		"inflight":    func() spillway.Gate { return must(inflight.New(inflight.Config{MaxInFlight: 5})) },
		"ratelimit":   func() spillway.Gate { return must(ratelimit.New(ratelimit.Config{Rate: 5})) },
		"throttle":    func() spillway.Gate { return overloaded() },
		"concurrency": func() spillway.Gate { return must(concurrency.New(concurrency.Config{MaxInFlight: 5, Fixed: true})) },
		"quota": func() spillway.Gate {
			local := must(quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 50}}))
			return must(quota.New(quota.Config{Allocator: local}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			spilltest.TestGate(t, func(*testing.T) spillway.Gate { return open() })
		})
	}
}

func TestDo(t *testing.T) {
	spilltest.TestRetries(t, func(_ *testing.T, s retry.Strategy) spilltest.Do { return retries(s) })
}

// MissingMethods finds a method that is missing, and one with another signature.
func TestMissingMethods(t *testing.T) {
	file, part := reflect.TypeFor[*os.File](), reflect.TypeFor[interface {
		Write([]byte) (int, error)
		Close()
		Name() string
	}]()
	missing := spilltest.MissingMethods(reflect.TypeFor[interface {
		io.WriteCloser
		Sync() error
	}](), part)
	if want := []string{"Close() error", "Sync() error"}; !slices.Equal(missing, want) {
		t.Errorf("%q, want %q", missing, want)
	}
	if missing := spilltest.MissingMethods(file, file); len(missing) > 0 {
		t.Errorf("%q of a type that has all", missing)
	}
}
