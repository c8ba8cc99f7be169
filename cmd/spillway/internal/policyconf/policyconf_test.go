package policyconf_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/quota"
)

// fields returns the fields of a Config: throttle.Config.K.
func fields(at string, t reflect.Type) (all []string) {
	for f := range t.Fields() {
		name := at + "." + f.Name
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[quota.Limit]() {
			all = append(all, fields(name, f.Type)...)
		} else if f.IsExported() {
			all = append(all, name)
		}
	}
	return all
}

// valueOf returns a field of a Config, by the name that fields returns.
func valueOf(config reflect.Value, field string) reflect.Value {
	for _, name := range strings.Split(field, ".")[2:] {
		config = config.FieldByName(name)
	}
	return config
}

// isCode reports whether a field is a function or an interface, which files cannot have.
func isCode(config any, field string) bool {
	kind := valueOf(reflect.ValueOf(config), field).Kind()
	return kind == reflect.Func || kind == reflect.Interface
}

// excepted returns the entries for a field in a list of exceptions.
func excepted(without map[string]string, field string) (entries []string) {
	for entry := range without {
		if field == entry || strings.HasSuffix(entry, ".") && strings.HasPrefix(field, entry) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// settings returns the settings of a surface, by the fields that they set, and the sections.
func (s *surface) settings() (places map[string]string, sections map[string]any) {
	places, sections = make(map[string]string), make(map[string]any)
	for at, section := range s.sections {
		policyconf.Settings(reflect.ValueOf(section), func(x policyconf.Setting) {
			if s == &scenarios && x.Field.Tag.Get("only") == "proxy" {
				return
			}
			for _, target := range x.Targets() {
				places[target], sections[target] = at+"."+x.Name, section
			}
		})
	}
	return places, sections
}

// TestEverySettingIsReachable fails for a field of a policy that a file cannot set, unless a
// list says why, and for an entry of a list that is not needed.
func TestEverySettingIsReachable(t *testing.T) {
	for _, s := range []*surface{&proxy, &scenarios} {
		places, _ := s.settings()
		without := maps.Clone(inCode)
		maps.Copy(without, s.without)
		unused := maps.Clone(without)
		for _, c := range configs {
			for _, field := range fields(reflect.TypeOf(c).String(), reflect.TypeOf(c)) {
				entries := excepted(without, field)
				for _, entry := range entries {
					delete(unused, entry)
				}
				switch place, reachable := places[field]; {
				case !reachable && entries == nil && !isCode(c, field):
					t.Errorf("%s has no setting for %s", s.name, field)
				case reachable && entries != nil:
					t.Errorf("%s has %s for %s, which the list excepts", s.name, place, field)
				}
				delete(places, field)
			}
		}
		for field, place := range places {
			t.Errorf("%s of %s sets %s, which is no field of a policy", place, s.name, field)
		}
		for entry := range unused {
			t.Errorf("the exception of %s for %s is not needed", entry, s.name)
		}
	}
}

// TestSettingsAreAlike: a field of a policy has one name, and one description of its values,
// in all files. The values are as in the library, except for the listed defaults.
func TestSettingsAreAlike(t *testing.T) {
	ownDefault := []string{ // of settings of numbers, for which the library has another
		"clusters.0.retry.base", "clusters.0.retry.max", "clusters.0.retry.max_retry_after",
		"mongo.0.retry.budget", // 500 in package budget, 1000 in the document
		"clusters.0.tune.min", "clusters.0.tune.max",
	}
	inProxy, sections := proxy.settings()
	inScenarios, others := scenarios.settings()
	for field, place := range inProxy {
		other, ok := inScenarios[field]
		if ok && last(place) != last(other) {
			t.Errorf("%s is %s in the proxy and %s in scenarios", field, place, other)
		}
		a := tagOf(sections[field], field)
		if own := a.Get("default"); strings.Contains(own, "Zero") && !slices.Contains(ownDefault, place) {
			t.Errorf("%s has a default of its own: %s", place, own)
		}
		if ok && !slices.Contains(ownDefault, place) && a.Get("default") != tagOf(others[field], field).Get("default") {
			t.Errorf("%s and %s say different values", place, other)
		}
	}
}

func last(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func tagOf(section any, field string) (tag reflect.StructTag) {
	policyconf.Settings(reflect.ValueOf(section), func(s policyconf.Setting) {
		if slices.Contains(s.Targets(), field) {
			tag = s.Field.Tag
		}
	})
	return tag
}

// TestBoundsAreAlike gives the settings that both files have the same values. Both files must
// accept or reject them, and name the setting.
func TestBoundsAreAlike(t *testing.T) {
	inProxy, sections := proxy.settings()
	inScenarios, _ := scenarios.settings()
	tried, rejected := 0, 0
	for field, place := range inProxy {
		other, ok := inScenarios[field]
		if !ok || strings.HasPrefix(field, "retry.MongoDBConfig") || field == "retry.BudgetedConfig.Backoff.Base" {
			continue // a strategy of MongoDB only; and a wait whose default is not zero, so that negative means none
		}
		for _, value := range ladder(sections[field], field) {
			tried++
			a, b := proxy.try(t, place, value), scenarios.try(t, other, value)
			if (a == nil) != (b == nil) {
				t.Errorf("%s: %v: %v in the proxy, %v in a scenario", place, value, a, b)
				continue
			}
			if a == nil {
				continue
			}
			rejected++
			wantA, wantB := strings.ReplaceAll(place, ".0.", "[0]."), strings.ReplaceAll(other, ".0.", "[0].")
			if !strings.HasPrefix(a.Field, wantA) || !strings.HasPrefix(b.Field, wantB) {
				t.Errorf("%s: %v: the errors are of %s and %s", place, value, a.Field, b.Field)
			}
		}
	}
	if tried < 400 || rejected < 100 {
		t.Errorf("%d values tried, %d rejected", tried, rejected)
	}
}

// ladder returns values of a setting, from far below its range to far above.
func ladder(section any, field string) (all []any) {
	policyconf.Settings(reflect.ValueOf(section), func(s policyconf.Setting) {
		if !slices.Contains(s.Targets(), field) {
			return
		}
		switch s.Value.Interface().(type) {
		case time.Duration:
			for _, text := range []string{"-1h", "-1ns", "0s", "1ns", "100us", "1ms", "50ms", "1s", "1m", "1h", "24h", "1000000h"} {
				all = append(all, text)
			}
		case float64:
			all = []any{-1e12, -1.0, 0.0, 1e-6, 0.01, 0.5, 1.0, 2.0, 100.0, 1e4, 1e6, 1e9, 1e12, ".nan"}
		case int:
			all = []any{-2147483648, -1, 0, 1, 10, 100, 10_000, 1_000_000, 2147483647}
		case bool:
			all = []any{false, true}
		case policyconf.Classes:
			for _, v := range []float64{-1, 0, 0.1, 0.5, 0.97, 2} {
				all = append(all, map[string]any{"sheddable": v, "sheddable_plus": v + 0.1, "critical": v + 0.2, "critical_plus": v + 0.3})
			}
		default: // maps, whose elements are settings, too
		}
	})
	return all
}

// TestFill: each setting sets its field, and no other.
func TestFill(t *testing.T) {
	for _, s := range []*surface{&proxy, &scenarios} {
		places, sections := s.settings()
		for field, place := range places {
			section := reflect.New(reflect.TypeOf(sections[field])).Elem()
			policyconf.Settings(section, func(x policyconf.Setting) {
				if slices.Contains(x.Targets(), field) {
					example(x.Value)
				}
			})
			for _, c := range configs {
				filled := reflect.New(reflect.TypeOf(c)).Elem()
				policyconf.FillValue(filled, section)
				for _, other := range fields(reflect.TypeOf(c).String(), reflect.TypeOf(c)) {
					v := valueOf(filled, other)
					targets := strings.Fields(tagOf(sections[field], field).Get("sets"))
					if set := !v.IsZero(); set != slices.Contains(targets, other) {
						t.Errorf("%s of %s: %s is %v", place, s.name, other, v)
					}
				}
			}
		}
	}
}

// example sets a value that is not zero.
func example(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(2)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("min(cpu, memory)")
	case reflect.Struct:
		example(v.Field(0))
	case reflect.Slice:
		v.Set(reflect.ValueOf(policyconf.Networks{"10.0.0.0/8"}))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		example(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a"), value)
	default:
		panic(v.Kind())
	}
}
