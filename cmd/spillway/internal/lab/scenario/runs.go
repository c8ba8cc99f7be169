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
		config, err := s.with(c.sets)
		if err != nil {
			return nil, err
		}
		if o.Seed > 0 {
			config.Seed = o.Seed
		}
		if err := config.Validate(); err != nil {
			if e, ok := errors.AsType[*spillway.FieldError](err); ok && c.name != "" { // the field has this value only here
				err = wrong(spelled(e.Path), "%s (in %q)", e.Problem(), c.name)
			}
			return nil, err
		}
		for i := range seeds {
			one := config
			one.Seed += uint64(i)
			all = append(all, Run{Variant: c.name, Config: one})
		}
	}
	return all, nil
}

// A change is a variant with its settings, which are made in this order.
type change struct {
	name string
	sets []set
}

// A set of settings is a list in the file at a place, or of the command line, which has none.
type set struct {
	settings []Setting
	at       string
}

// cases returns each variant with each value of the sweeps.
func (s *Scenario) cases(o Options) []change {
	var base []set
	if o.Quick {
		base = []set{{s.Quick, "quick"}}
	}
	all := []change{{sets: base}}
	if len(s.Variants) > 0 {
		all = nil
	}
	for i, v := range s.Variants {
		all = append(all, change{v.Name, append(slices.Clone(base), set{v.Set, fmt.Sprintf("variants[%d].set", i)})})
	}
	for _, sweep := range o.Sweep {
		var next []change
		for _, c := range all {
			for _, value := range sweep.Values {
				name := strings.TrimPrefix(c.name+", "+sweep.Field+"="+value, ", ")
				next = append(next, change{name, append(slices.Clone(c.sets), set{settings: []Setting{{sweep.Field, value}}})})
			}
		}
		all = next
	}
	return all
}

// with returns the system after some changes, which are made to a fresh copy.
func (s *Scenario) with(sets []set) (sim.Config, error) {
	f := &Scenario{File: new(File), source: s.source}
	if err := f.source.Decode(f.File, maxSize, dist); err != nil {
		return sim.Config{}, err
	}
	for _, set := range sets {
		for i, setting := range set.settings {
			n, err := f.apply(setting)
			if err == nil && n == 0 {
				err = fmt.Errorf("%q names no field of this scenario", setting.Field)
			}
			if err != nil && set.at != "" {
				err = wrong(fmt.Sprintf("%s[%d]", set.at, i), "is wrong: %v", err)
			}
			if err != nil {
				return sim.Config{}, err
			}
		}
	}
	return f.config()
}
