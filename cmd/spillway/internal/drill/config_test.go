package drill

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// small is a valid Config.
func small() Config {
	return Config{Overload: 5, Calm: time.Second, Step: 2 * time.Second, Recovery: 2 * time.Second,
		Deadline: 100 * ms, Service: 1500 * time.Microsecond, Seed: 1}
}

func TestValidate(t *testing.T) {
	if err := small().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		change func(*Config)
		flag   string
		value  string // the error shows it
	}{
		{func(c *Config) { c.Overload = 0 }, "overload", "0"},
		{func(c *Config) { c.Overload = -1 }, "overload", "-1"},
		{func(c *Config) { c.Overload = 101 }, "overload", "101"},
		{func(c *Config) { c.Overload = math.NaN() }, "overload", "NaN"},
		{func(c *Config) { c.Calm = 0 }, "calm", "0s"},
		{func(c *Config) { c.Step = -time.Second }, "step", "-1s"},
		{func(c *Config) { c.Step = time.Hour }, "step", "1h0m0s"},
		{func(c *Config) { c.Recovery = 900 * ms }, "recovery", "900ms"},
		{func(c *Config) { c.Deadline = 2 * ms }, "deadline", "2ms"},
		{func(c *Config) { c.Deadline = time.Hour }, "deadline", "1h0m0s"},
		{func(c *Config) { c.Service = 0 }, "service", "0s"},
		{func(c *Config) { c.Service = time.Second }, "service", "1s"},
		{func(c *Config) { c.MaxInFlight = -1 }, "max-in-flight", "-1"},
		{func(c *Config) { c.Port = -1 }, "port", "-1"},
		{func(c *Config) { c.Port = 65536 }, "port", "65536"},
		{func(c *Config) { c.Overload, c.Step = 100, 10*time.Minute }, "overload", "100"},
	} {
		c := small()
		row.change(&c)
		err := c.Validate()
		usage, ok := errors.AsType[*UsageError](err)
		if !ok || usage.Flag != row.flag || !strings.HasPrefix(usage.Problem, "is "+row.value+", must be ") {
			t.Errorf("error %q, want one for --%s that says %s", err, row.flag, row.value)
		}
	}
}

func TestPhasesLieEndToEnd(t *testing.T) {
	p := small().phases(600)
	want := []Phase{{"calm", 0, 1, 0.5, 300}, {"step", 1, 3, 5, 3000}, {"recovery", 3, 5, 0.5, 300}}
	for i := range want {
		if p[i] != want[i] {
			t.Errorf("%+v, want %+v", p[i], want[i])
		}
	}
}

func TestInFlightLimit(t *testing.T) {
	for _, row := range []struct {
		capacity float64
		set      int
		want     int
	}{
		{600, 0, 15},
		{650, 0, 16},
		{640, 7, 7},
		{10, 0, minInFlight},
	} {
		c := small()
		c.MaxInFlight = row.set
		if got, rule := c.inFlightLimit(row.capacity); got != row.want || rule == "" {
			t.Errorf("limit at %v/s, --max-in-flight=%d: %d (%s), want %d", row.capacity, row.set, got, rule, row.want)
		}
	}
}
