package importer

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// Options say what documents do not.
type Options struct {
	Listen   string // where clients connect to, if no document says it
	Upstream string // the endpoint of clusters that have none
	// Certificates is the directory of files for certificates and keys that documents contain. Without one
	// they cannot be imported.
	Certificates string
	// Environment is [os.LookupEnv], for certificates and keys that documents have in variables of the
	// environment (default: no variable is set).
	Environment func(string) (string, bool)
}

// Defaults of [Options].
const (
	DefaultListen   = "127.0.0.1:8000"
	DefaultUpstream = "127.0.0.1:8080"
)

// A builder makes the configuration.
type builder struct {
	Result

	options Options
	config  config.Config
}

func newBuilder(o Options) *builder {
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	o.Upstream = cmp.Or(o.Upstream, DefaultUpstream)
	if o.Environment == nil {
		o.Environment = func(string) (string, bool) { return "", false }
	}
	return &builder{options: o}
}

// cluster is one that is being made.
func (b *builder) cluster(name string) *config.Cluster {
	return &config.Cluster{Name: name, Endpoints: []string{b.options.Upstream}}
}

// try replaces a part of the configuration, such as a cluster or a listener, by what a leaf makes of it,
// unless the proxy does not accept that, and says what happened to the leaf. The name is that of the field.
// A reason, if any, says how its meaning is another one.
func try[T any](b *builder, x, next *T, c document.Part, field, reason string) bool {
	at, trial := b.trial(next)
	accepted := settle(c, at+field, reason, trial.Check())
	if accepted {
		*x = *next
	}
	return accepted
}

// nowhere is an endpoint of trials: no part that is tried has the address.
const nowhere = "trial.invalid:1"

// trial returns the name of a part of the configuration, and a configuration to try it in.
func (b *builder) trial(part any) (at string, trial config.Config) {
	trial = *config.ForUpstream("127.0.0.1:0", nowhere)
	switch x := part.(type) {
	case *config.Cluster:
		at, trial.Clusters = "clusters["+x.Name+"].", []config.Cluster{*x}
	case *config.Listener:
		at, trial.Listeners = "listeners[].", []config.Listener{*x}
	case *config.Route:
		alone := *x
		alone.Cluster = ""
		at, trial.Routes = "routes[].", []config.Route{alone}
	case *config.Mongo:
		alone := *x
		if len(alone.Endpoints) == 0 {
			alone.Endpoints = []string{nowhere}
		}
		at, trial = "mongo[].", config.Config{Mongo: []config.Mongo{alone}}
	}
	return at, trial
}

// assign sets a field of a part of the configuration.
func assign[T any](b *builder, x *T, c document.Part, field, reason string, value any) bool {
	next := config.Clone(x)
	to := config.Field(next, field)
	if to.Kind() == reflect.Pointer && reflect.TypeOf(value) != to.Type() {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	to.Set(reflect.ValueOf(value).Convert(to.Type()))
	return try(b, x, next, c, field, reason)
}

// put sets a field to the value of a leaf, if it is there. A zero is left out: in a field it is the default.
func put[T any](b *builder, x *T, c document.Part, field, reason string) bool {
	if !c.There() {
		return false
	}
	value, ok, problem := any(c.Text()), true, ""
	switch config.Field(config.Clone(x), field).Interface().(type) {
	case time.Duration:
		value, ok = c.Duration()
		problem = "it is no length of time such as 1.5s"
	case int:
		value, ok = c.Count()
		problem = "it is no number from 0 to 2147483647"
	case float64:
		value, ok = c.Number()
		problem = "it is no number"
	}
	switch v := reflect.ValueOf(value); {
	case !ok:
		c.Leave(problem, "")
	case v.Kind() != reflect.String && v.IsZero():
		c.Leave("0 is the default here", "")
	default:
		return assign(b, x, c, field, reason, value)
	}
	return false
}

// limit sets a limit of a cluster, where the greatest numbers represent none.
func (b *builder) limit(x *config.Cluster, c document.Part, field, reason string) bool {
	if !c.There() {
		return false
	}
	n, err := strconv.ParseUint(c.Text(), 10, 32)
	switch {
	case err != nil:
		c.Leave("it is no number from 0 to 4294967295", "")
	case n == 0:
		c.Leave("it would let nothing through", "leave out what goes there")
	case n >= math.MaxInt32:
		return assign(b, x, c, field, reason, -1)
	default:
		return assign(b, x, c, field, reason, n)
	}
	return false
}

// settle says what happened to a leaf, and reports whether it was carried: err says why the proxy does not
// accept it.
func settle(c document.Part, field, reason string, err error) bool {
	if err != nil {
		c.Leave("the proxy does not accept it: "+err.Error(), "")
	} else {
		c.Change(field, reason)
	}
	return err == nil
}

// place adds a cluster, or returns the name of the one that is the same but for the
// name: the routes of one cluster may have different retries.
func (b *builder) place(x *config.Cluster) string {
	for i := range b.config.Clusters {
		same := b.config.Clusters[i]
		same.Name = x.Name
		if baseName(b.config.Clusters[i].Name) == baseName(x.Name) && reflect.DeepEqual(same, *x) {
			return b.config.Clusters[i].Name
		}
	}
	name := x.Name
	for n := 2; slices.ContainsFunc(b.config.Clusters, func(o config.Cluster) bool { return o.Name == x.Name }); n++ {
		x.Name = fmt.Sprintf("%s~%d", name, n)
	}
	b.config.Clusters = append(b.config.Clusters, *x)
	if x.Name != name {
		b.Notef("cluster %q was split, because its routes have different retries: %q has separate limits", name, x.Name)
	}
	return x.Name
}

func baseName(name string) string {
	name, _, _ = strings.Cut(name, "~")
	return name
}

// finish ends the import: what was not asked for is left out. complete adds what a configuration needs
// besides, unless there is none.
func (b *builder) finish(roots []document.Part, reason string, none bool, complete func()) (*Result, error) {
	for _, root := range roots {
		root.Leave(reason, "")
	}
	defer b.Sort()
	if none {
		return &b.Result, nil
	}
	complete()
	if err := b.config.Check(); err != nil {
		return nil, fmt.Errorf("what was imported is no good configuration: %w", err)
	}
	b.Config = &b.config
	return &b.Result, nil
}

// done ends the import of clusters and routes.
func (b *builder) done(roots []document.Part) (*Result, error) {
	return b.finish(roots, "the proxy has nothing like it, or not in this place", b.nothing, func() {
		if len(b.config.Clusters) == 0 {
			b.place(b.cluster("upstream"))
			b.Notef("no document has a cluster: one was made up, with the endpoint %s", b.options.Upstream)
		}
		if len(b.config.Listeners) == 0 {
			b.config.Listeners = []config.Listener{{Address: b.options.Listen}}
			b.Notef("no document says where clients connect to: a listener was made up, at %s", b.options.Listen)
		}
		b.Notef("gates that were not imported observe, and reject nothing: mode: enforce makes them enforce")
	})
}
