package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/sim"
	"github.com/seed90641741/spillway/throttle"
)

// maxSize is the largest size of a file in bytes.
const maxSize = 64 << 20

// A Scenario is a valid file.
type Scenario struct {
	*File

	source strict.Source
}

// Parse reads a scenario. The name is that of the file, for errors, which are of
// type [*strict.Error].
func Parse(name string, text []byte) (*Scenario, error) {
	s := &Scenario{File: new(File), source: strict.Source{Name: name, Text: text}}
	if err := s.source.Decode(s.File, maxSize, dist); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, s.Locate(err)
	}
	return s, nil
}

// dist reads a distribution.
var dist = strict.Text(func(s string) (sim.Dist, error) {
	d, err := sim.ParseDist(s)
	if e, ok := errors.AsType[*spillway.FieldError](err); ok {
		return d, errors.New("must be " + e.Allowed)
	}
	return d, err
})

func wrong(field, format string, args ...any) error {
	return &strict.Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}

func (s *Scenario) check() error {
	if s.Name == "" {
		return wrong("name", "is missing")
	}
	for i, v := range s.Variants {
		at := fmt.Sprintf("variants[%d].name", i)
		if v.Name == "" {
			return wrong(at, "is missing")
		}
		if slices.ContainsFunc(s.Variants[:i], func(o Variant) bool { return o.Name == v.Name }) {
			return wrong(at, "is %s, must be different from the others", v.Name)
		}
	}
	var runs []Run
	for _, quick := range []bool{false, true} {
		var err error
		if runs, err = s.Runs(Options{Quick: quick}); err != nil {
			return err
		}
	}
	return s.checkExpectations(emptyResult(&runs[0].Config))
}

// Locate adds the position of the field in the file to err.
func (s *Scenario) Locate(err error) error {
	if e, ok := errors.AsType[*strict.Error](err); ok {
		return s.source.At(e.Field, e.Problem)
	}
	if e, ok := errors.AsType[*spillway.FieldError](err); ok {
		return s.source.At(spelled(e.Path), e.Problem())
	}
	return &strict.Error{File: s.source.Name, Problem: err.Error()}
}

// spelled returns how files spell a path of sim.Config.
func spelled(path string) string {
	for _, x := range sections {
		if before, field, ok := strings.Cut(path, "."+x.path+"."); ok {
			return strict.Path(before) + "." + x.name + "." + x.spell(x.section, field)
		}
	}
	return strict.Path(modes.Replace(path))
}

// sections are the Configs of the library in sim.Config, and where files have their fields.
// The first that fits counts.
var sections = []struct {
	path, name string
	section    any
	spell      func(section any, field string) string
}{
	{"Egress.Throttle", "throttle", policyconf.Throttle{}, policyconf.Path[throttle.Config]},
	{"Retry.Budgeted", "retry", policyconf.Retry{}, policyconf.Path[retry.BudgetedConfig]},
	{"Retry.AWSStandard", "retry", policyconf.Retry{}, policyconf.Path[retry.AWSStandardConfig]},
	{"Retry.MongoDB", "retry", policyconf.Retry{}, policyconf.Path[retry.MongoDBConfig]},
	{"Ingress.Concurrency", "ingress.shed", policyconf.Shed{}, policyconf.Path[concurrency.Config]},
	{"Ingress.Load", "ingress.shed", policyconf.Shed{}, policyconf.Path[load.Config]},
	{"Customers", "ingress.quota", policyconf.Quota{}, policyconf.Path[quota.LocalConfig]},
}

// modes are fields that sim.Config has in addition to a Config of the library.
var modes = strings.NewReplacer("Egress.ThrottleMode", "Throttle.Mode", "Egress.InFlightMode", "Inflight.Mode",
	"Egress.MaxInFlight", "Inflight.MaxInFlight", "LearnCosts", "Ingress.LearnCosts", "CPUFactor", "CpuFactor",
	"RateLimitMode", "RateLimit.Mode", "QuotaMode", "Quota.Mode", "ShedMode", "Shed.Mode")
