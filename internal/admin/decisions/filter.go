package decisions

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Filter selects samples. Empty fields match all.
type Filter struct {
	Reason, Policy, Mode, Class        string
	Listener, Cluster, Route, Path     string // Path is how the path begins
	Customer, Caller, RequestID, Trace string // Trace is a trace id or a traceparent
	Since, Until                       time.Time
}

// fields are the names of the parameters that [newFilter] knows.
var fields = []string{
	"reason", "policy", "mode", "class", "listener", "cluster", "route", "path", "customer", "caller", "request_id", "trace_id", "since", "until",
}

// newFilter returns the filter that the query of a URL describes. Parameters in others are
// ignored. The error names a wrong parameter.
func newFilter(query url.Values, others ...string) (*Filter, error) {
	for name := range query {
		if !slices.Contains(fields, name) && !slices.Contains(others, name) {
			return nil, fmt.Errorf("unknown parameter %.40q; the parameters are %s", name, strings.Join(append(slices.Clone(others), fields...), ", "))
		}
	}
	f := &Filter{
		Reason: query.Get("reason"), Policy: query.Get("policy"), Mode: query.Get("mode"), Class: strings.ToUpper(query.Get("class")),
		Listener: query.Get("listener"), Cluster: query.Get("cluster"), Route: query.Get("route"), Path: query.Get("path"),
		Customer: query.Get("customer"), Caller: query.Get("caller"), RequestID: query.Get("request_id"), Trace: query.Get("trace_id"),
	}
	if id := traceID(f.Trace); id != "" {
		f.Trace = id
	}
	var err error
	if f.Since, err = instant(query, "since"); err != nil {
		return nil, err
	}
	f.Until, err = instant(query, "until")
	return f, err
}

func instant(query url.Values, name string) (t time.Time, err error) {
	if text := query.Get(name); text != "" {
		if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
			return time.Now().Add(-ago), nil
		}
		if t, err = time.Parse(time.RFC3339, text); err != nil {
			return t, fmt.Errorf("%s is %.40q, must be a time such as 2026-01-02T15:04:05Z, or how long ago, such as 5m", name, text)
		}
	}
	return t, nil
}

func (f *Filter) matches(d *Decision) bool {
	same := func(want, is string) bool { return want == "" || want == is || Clean(want) == is }
	return same(f.Reason, d.Reason) && same(f.Policy, d.Policy) && same(f.Mode, d.Mode) && same(f.Class, d.Criticality) &&
		same(f.Listener, d.Listener) && same(f.Cluster, d.Cluster) && same(f.Route, d.Route) &&
		same(f.Customer, d.Customer) && same(f.Caller, d.Caller) && same(f.RequestID, d.RequestID) && same(f.Trace, d.TraceID) &&
		(f.Path == "" || d.Path != "" && (strings.HasPrefix(d.Path, f.Path) || d.Path == PathPrefix(f.Path))) &&
		(f.Since.IsZero() || !d.Time.Before(f.Since)) && (f.Until.IsZero() || !d.Time.After(f.Until))
}
