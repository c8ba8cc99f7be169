package drill

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// small is a valid Config.
func small() Config {
	return Config{Scenario: ScenarioStep, Clients: 1, Mix: []float64{1, 1, 1, 1}, Protect: ProtectCallers, Backend: process.KindCPU, Overload: 5, Calm: time.Second, Step: 2 * time.Second, Recovery: 2 * time.Second,
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
		{func(c *Config) { c.Service = -1 }, "service", "-1ns"},
		{func(c *Config) { c.Service = time.Second }, "service", "1s"},
		{func(c *Config) { c.MaxInFlight = -1 }, "max-in-flight", "-1"},
		{func(c *Config) { c.Port = -1 }, "port", "-1"},
		{func(c *Config) { c.Port = 65536 }, "port", "65536"},
		{func(c *Config) { c.Backend, c.Deadline = process.KindMixed, 12*ms }, "deadline", "12ms"},
		{func(c *Config) { c.Backend, c.Service, c.Deadline = process.KindBlocking, 20*ms, 39*ms }, "deadline", "39ms"},
		{func(c *Config) { c.Mix = []float64{1, 1, 1} }, "mix", "[1 1 1]"},
		{func(c *Config) { c.Mix = make([]float64, 4) }, "mix", "[0 0 0 0]"},
		{func(c *Config) { c.Mix = []float64{1, -1, 1, 1} }, "mix", "-1"},
		{func(c *Config) { c.Mix = []float64{1, 1, math.NaN(), 1} }, "mix", "NaN"},
		{func(c *Config) { c.Scenario = ScenarioDegradation }, "protect", `"callers"`},
		{func(c *Config) { c.Scenario, c.Protect = ScenarioDegradation, ProtectProxy }, "protect", `"proxy"`},
		{func(c *Config) { c.Clients = 0 }, "clients", "0"},
		{func(c *Config) { c.Clients = 1001 }, "clients", "1001"},
		{func(c *Config) { c.Retries = 11 }, "retries", "11"},
		{func(c *Config) { c.Retries = -2 }, "retries", "-2"},
		{func(c *Config) { c.Body = -1 }, "body", "-1"},
		{func(c *Config) { c.Body = 1<<20 + 1 }, "body", "1048577"},
		{func(c *Config) { c.Overload, c.Step = 100, 10*time.Minute }, "overload", "100"},
	} {
		c := small()
		row.change(&c)
		err := c.Validate()
		usage, ok := errors.AsType[*process.UsageError](err)
		if !ok || usage.Flag != row.flag || !strings.HasPrefix(usage.Problem, "is "+row.value+", must be ") {
			t.Errorf("error %q, want one for --%s that says %s", err, row.flag, row.value)
		}
	}
}

func TestInFlightLimitOfManyClients(t *testing.T) {
	c := small()
	c.Clients = 10
	if got, _ := c.inFlightLimit(640); got != 10*minInFlight {
		t.Errorf("%d for 10 clients, want the least for each of them", got)
	}
}

func TestRetriesFollowFromWhoIsProtected(t *testing.T) {
	for _, row := range []struct {
		protect, scenario string
		set, want         int
	}{
		{ProtectCallers, ScenarioStep, -1, 3},
		{ProtectBoth, ScenarioStep, -1, 3},
		{ProtectNone, ScenarioStep, -1, 3},
		{ProtectServer, ScenarioStep, -1, 0},
		{ProtectProxy, ScenarioStep, -1, 0},
		{ProtectServer, ScenarioStorm, -1, 3},
		{ProtectServer, ScenarioStep, 2, 2},
		{ProtectCallers, ScenarioStep, 0, 0},
	} {
		c := small()
		c.Protect, c.Scenario, c.Retries = row.protect, row.scenario, row.set
		if got := c.withDefaults().Retries; got != row.want {
			t.Errorf("%s, %s, --retries=%d: %d, want %d", row.protect, row.scenario, row.set, got, row.want)
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

func TestARetryStormIsNoOverload(t *testing.T) {
	c := small()
	c.Scenario, c.Step = ScenarioStorm, 0
	c = c.withDefaults()
	want := []Phase{{"calm", 0, 1, 0.8, 480}, {"step", 1, 2.5, 0.8, 480}, {"recovery", 2.5, 4.5, 0.8, 480}}
	for i, p := range c.phases(600) {
		if p != want[i] {
			t.Errorf("%+v, want %+v", p, want[i])
		}
	}
	if s := c.settings(); s.Overload != 0.8 || s.Calm != 0.8 || s.StepName() != "outage" {
		t.Errorf("settings %+v", s)
	}
}

func TestInFlightLimit(t *testing.T) {
	for _, row := range []struct {
		capacity float64
		set      int
		protect  string
		want     int
	}{
		{600, 0, ProtectCallers, 15},
		{650, 0, ProtectCallers, 16},
		{640, 7, ProtectCallers, 7},
		{10, 0, ProtectCallers, minInFlight},
		{640, 0, ProtectBoth, 256},
		{640, 7, ProtectBoth, 7},
		{640, 7, ProtectServer, 0},
		{640, 0, ProtectNone, 0},
	} {
		c := small()
		c.MaxInFlight, c.Protect = row.set, row.protect
		if got, rule := c.inFlightLimit(row.capacity); got != row.want || (rule == "") != (got == 0) {
			t.Errorf("limit at %v/s, --max-in-flight=%d, %s: %d (%s), want %d", row.capacity, row.set, row.protect, got, rule, row.want)
		}
	}
}
