// Package settings finds the fields of a configuration that a reason is about.
package settings

import (
	"slices"
	"strings"
)

// A Setting is one field of the configuration.
type Setting struct {
	Field, Value string
	Given        bool // by the file or the command line; otherwise it is a default
}

// A Field is a field of the configuration, as the page shows it.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"` // empty: it is not set
}

// Named returns fields without values.
func Named(names []string) (all []Field) {
	for _, name := range names {
		all = append(all, Field{Name: name})
	}
	return all
}

// mostFields is how many fields a reason shows at most.
const mostFields = 4

// Of returns the fields that patterns such as clusters[].quota match at some places,
// with their values. Of a place it takes the fields that are set, or the first one.
func Of(patterns, places []string, settings []Setting) (all []Field) {
	for _, place := range places {
		var set, unset []Field
		for _, pattern := range patterns {
			for _, name := range namesOf(pattern, place, settings) {
				if values := valuesOf(name, settings); len(values) > 0 {
					set = append(set, values...)
				} else {
					unset = append(unset, Field{Name: name})
				}
			}
		}
		if len(set) == 0 {
			set = unset[:min(1, len(unset))]
		}
		all = append(all, set...)
	}
	if len(all) == 0 && len(patterns) > 0 {
		whole := Field{Name: patterns[0]}
		if i := slices.IndexFunc(settings, func(x Setting) bool { return x.Field == patterns[0] }); i >= 0 {
			whole.Value = settings[i].Value
		}
		all = []Field{whole}
	}
	return all[:min(len(all), mostFields)]
}

// namesOf returns the fields that a pattern matches at a place: the field of the listener or
// cluster, or of each route to the cluster. Requests of an exempt route are never rejected, and have no deadline.
func namesOf(pattern, place string, settings []Setting) (all []string) {
	section, field, ok := strings.Cut(pattern, "[]")
	if !ok {
		return nil
	}
	key := "].name"
	if section == "routes" {
		key = "].cluster"
	}
	for _, x := range settings {
		if entry, ok := strings.CutSuffix(x.Field, key); ok && x.Value == place && strings.HasPrefix(entry, section+"[") && !exempt(entry, settings) {
			all = append(all, entry+"]"+field)
		}
	}
	return all
}

func exempt(entry string, settings []Setting) bool {
	return slices.ContainsFunc(settings, func(x Setting) bool { return x.Field == entry+"].exempt" && x.Value == "true" })
}

// valuesOf returns a field with its value, or the first ones of a section.
func valuesOf(name string, settings []Setting) (all []Field) {
	for _, x := range settings {
		rest, ok := strings.CutPrefix(x.Field, name)
		switch {
		case !ok:
		case rest == "" && x.Value != "given": // a section with values of its own
			return []Field{{x.Field, x.Value}}
		case len(all) < 2 && rest != "" && (rest[0] == '.' || rest[0] == '['):
			all = append(all, Field{x.Field, x.Value})
		}
	}
	return all
}
