package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/sim"
)

// Options select the runs of a scenario.
type Options struct {
	Quick bool    // the short version
	Sweep []Sweep // each combination of their values is run, for each variant
	Seeds int     // each is run with so many seeds, from the scenario's on; 0 is 1
	Seed  uint64  // in place of the scenario's; 0: that
}

// A Sweep is a field and its values.
type Sweep struct {
	Field  string
	Values []string
}

// ParseSweep reads FIELD=VALUE,VALUE,...
func ParseSweep(text string) (Sweep, error) {
	field, values, ok := strings.Cut(text, "=")
	s := Sweep{Field: strings.TrimSpace(field)}
	for v := range strings.SplitSeq(values, ",") {
		if v = strings.TrimSpace(v); v != "" {
			s.Values = append(s.Values, v)
		}
	}
	if !ok || s.Field == "" || len(s.Values) == 0 {
		return s, fmt.Errorf("%q is not of the form throttle.k=1.1,1.5,2", text)
	}
	return s, nil
}

// maxRuns is the most runs that a scenario may ask for.
const maxRuns = 10_000

// A Run is one simulation of a scenario.
type Run struct {
	Variant string // empty where there is one only
	Config  sim.Config
}

// Runs returns the selected simulations: for each variant, for each value of the sweeps, for
// each seed. All of them are valid.
func (s *Scenario) Runs(o Options) ([]Run, error) {
	cases := s.cases(o)
	seeds := max(o.Seeds, 1)
	if len(cases)*seeds > maxRuns {
		return nil, fmt.Errorf("%d runs are asked for, more than %d", len(cases)*seeds, maxRuns)
	}
	var all []Run
	for _, c := range cases {
		config, err := s.with(c.set)
		if err != nil {
			return nil, err
		}
		if o.Seed > 0 {
			config.Seed = o.Seed
		}
		if err := config.Validate(); err != nil {
			return nil, c.explain(err)
		}
		for i := range seeds {
			one := config
			one.Seed += uint64(i)
			all = append(all, Run{Variant: c.name, Config: one})
		}
	}
	return all, nil
}

// A change is a variant with its settings and their positions.
type change struct {
	name string
	set  []located
}

// explain says of an error that its field has this value only here.
func (c *change) explain(err error) error {
	if e, ok := errors.AsType[*spillway.FieldError](err); ok && c.name != "" {
		return &fieldError{spelled(e.Path), fmt.Sprintf("%s (in %q)", e.Problem(), c.name)}
	}
	return err
}

type located struct {
	Setting

	at string
}

// cases returns each variant with each value of the sweeps.
func (s *Scenario) cases(o Options) []change {
	var base []located
	if o.Quick {
		base = places(s.Quick, "quick")
	}
	all := []change{{set: base}}
	if len(s.Variants) > 0 {
		all = nil
	}
	for i, v := range s.Variants {
		all = append(all, change{v.Name, append(slices.Clone(base), places(v.Set, fmt.Sprintf("variants[%d].set", i))...)})
	}
	for _, sweep := range o.Sweep {
		var next []change
		for _, c := range all {
			for _, value := range sweep.Values {
				name := strings.TrimPrefix(c.name+", "+sweep.Field+"="+value, ", ")
				next = append(next, change{name, append(slices.Clone(c.set), located{Setting{sweep.Field, value}, ""})})
			}
		}
		all = next
	}
	return all
}

func places(set []Setting, at string) (all []located) {
	for i, s := range set {
		all = append(all, located{s, fmt.Sprintf("%s[%d]", at, i)})
	}
	return all
}

// with returns the system after some changes, which are made to a fresh copy.
func (s *Scenario) with(set []located) (sim.Config, error) {
	f := &Scenario{File: new(File), source: s.source}
	if err := f.source.Decode(f.File, maxSize, dist); err != nil {
		return sim.Config{}, err
	}
	for _, l := range set {
		n, err := f.apply(l.Setting)
		switch {
		case err != nil:
		case n == 0:
			err = fmt.Errorf("%q names no field of this scenario", l.Field)
		default:
			continue
		}
		if l.at == "" {
			return sim.Config{}, err
		}
		return sim.Config{}, &fieldError{l.at, "is wrong: " + err.Error()}
	}
	return f.config()
}
