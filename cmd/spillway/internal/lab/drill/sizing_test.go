package drill

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

const us = time.Microsecond

// What is not the work of the backend fits into its share of the processors.
func TestSpacing(t *testing.T) {
	x := costs{offered: 20 * us, rejection: 60 * us}
	for _, row := range []struct {
		name    string
		change  func(*Config)
		callers int
		shared  bool
		want    time.Duration
	}{
		{"both, two processors", func(c *Config) { c.Protect = ProtectBoth }, 1, false, 1800 * us},
		{"both, eight", func(c *Config) { c.Protect = ProtectBoth }, 7, false, 1800 * us},
		{"callers, half the calls", func(c *Config) { c.Overload = 5 }, 1, false, 1800 * us},
		{"costly calls, two processors", func(c *Config) { c.Protect, c.Overload = ProtectBoth, 50 }, 1, false, 3450 * us},
		{"costly calls, eight", func(c *Config) { c.Protect, c.Overload = ProtectBoth, 50 }, 7, false, 1800 * us},
		{"server", func(c *Config) { c.Protect = ProtectServer }, 1, false, 10800 * us},
		{"server, blocking", func(c *Config) { c.Protect, c.Backend = ProtectServer, process.KindBlocking }, 1, false, 2400 * us},
		{"one processor", func(c *Config) { c.Protect = ProtectBoth }, 1, true, 8800 * us},
		{"one processor, blocking", func(c *Config) { c.Protect, c.Backend = ProtectBoth, process.KindBlocking }, 1, true, 1320 * us},
		{"no overload", func(c *Config) { c.Overload = 0.5 }, 1, false, 120 * us},
	} {
		c := small()
		c.Overload = 10
		row.change(&c)
		if got := x.spacing(c, row.callers, row.shared); (got - row.want).Abs() > us {
			t.Errorf("%s: %v between two calls, want %v", row.name, got, row.want)
		}
	}
}

// The work of a call and the deadline follow from the spacing where they are not set.
func TestSized(t *testing.T) {
	for _, row := range []struct {
		backend                       string
		service, deadline             time.Duration
		wantedService, wantedDeadline time.Duration
	}{
		{process.KindCPU, 0, 0, 4 * ms, 400 * ms},
		{process.KindMixed, 0, 90 * ms, 4 * ms, 90 * ms},
		{process.KindBlocking, 0, 0, 32 * ms, 400 * ms},
		{process.KindBlocking, 20 * ms, 0, 20 * ms, 250 * ms},
		{process.KindCPU, ms, 0, ms, 100 * ms},
	} {
		c := small()
		c.Backend, c.Service, c.Deadline = row.backend, row.service, row.deadline
		if got := c.sized(4 * ms); got.Service != row.wantedService || got.Deadline != row.wantedDeadline {
			t.Errorf("%s: %v of work, deadline %v; want %v, %v", row.backend, got.Service, got.Deadline, row.wantedService, row.wantedDeadline)
		}
	}
}

func TestBackendOfASmallMachine(t *testing.T) {
	if one, two := backendFor(1), backendFor(2); one != process.KindBlocking || two != process.KindCPU {
		t.Errorf("%s with one processor, %s with two", one, two)
	}
}

// A drill measures what calls cost here before it chooses their work.
func TestCosts(t *testing.T) {
	d := &drill{config: small(), result: &Result{}}
	offered, err1 := d.offeredCost(t.Context())
	rejection, err2 := d.rejectionCost(t.Context())
	if err1 != nil || err2 != nil || offered <= 0 || offered > 10*ms || rejection <= 0 || rejection > 100*ms {
		t.Errorf("%v and %v, %v, %v", offered, rejection, err1, err2)
	}
}
