package spillxds

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/anypb"
)

// An answer is a response of either form of the protocol.
type answer struct {
	typeURL, version, nonce string
	resources               []named
	removed                 []string // incremental only
	complete                bool     // state of the world: what is absent does not exist
}

// A named resource has a name and its own version number in the incremental form.
type named struct {
	name, version string
	body          *anypb.Any
}

// reading is what an answer says, before anything of it is in force.
type reading struct {
	good    []versioned
	present map[string]bool // by name, also of what is bad
	partial bool            // what is absent may exist all the same
	errs    []error
}

type versioned struct {
	resource

	version string
}

// read parses all resources of a. Of two that contradict each other neither counts.
func (a *answer) read() reading {
	r := reading{present: map[string]bool{}}
	twice := map[string]bool{}
	for _, n := range a.resources {
		parsed, err := n.parse()
		if errors.Is(err, errUnchanged) { // a heartbeat, which tells of no others
			r.present[parsed.name], r.partial = true, true
			continue
		}
		if parsed.name != "" && r.present[parsed.name] {
			err = fmt.Errorf("cluster %.100q comes twice", parsed.name)
			twice[parsed.name] = true
		}
		if parsed.name == "" {
			r.partial = true // it may be any of those
		} else {
			r.present[parsed.name] = true
		}
		if err != nil {
			r.errs = append(r.errs, err)
			continue
		}
		r.good = append(r.good, parsed)
	}
	r.good = slices.DeleteFunc(r.good, func(v versioned) bool { return twice[v.name] })
	return r
}

func (n named) parse() (versioned, error) {
	r, err := parse(n.body)
	if n.name != "" && r.name != n.name {
		if err == nil {
			err = fmt.Errorf("the resource %.100q holds the cluster %.100q", n.name, r.name)
		}
		r.name = n.name
	}
	return versioned{r, n.version}, err
}

// apply puts the good resources of a in force, each as a whole, and keeps the
// last limits of the bad ones. It returns what happened, and why a is to be
// rejected, if it is.
func (t *table) apply(a *answer) (told []Event, errs []error) {
	r := a.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range r.present {
		if k := t.known[name]; k != nil {
			k.deadline, k.heard = time.Time{}, true
		}
	}
	for _, v := range r.good {
		told = append(told, t.accept(&v)...)
	}
	for _, name := range t.gone(a, &r) {
		told = append(told, t.remove(name)...)
	}
	if len(r.errs) == 0 && a.complete {
		t.version = a.version
	}
	return told, r.errs
}

// accept puts v in force if a caller may use it.
func (t *table) accept(v *versioned) []Event {
	k := t.known[v.name]
	if k == nil {
		if !t.client.config.Wildcard || len(t.known) >= t.client.config.MaxClusters {
			return nil
		}
		k = t.add(v.name)
	}
	news := k.state != current || k.resource != v.resource
	k.version = v.version
	k.accept(&v.resource)
	if !news {
		return nil
	}
	return []Event{{Kind: Updated, Cluster: v.name, Limits: v.limits, Ignored: v.ignored}}
}

// gone returns what the control plane does not have any more.
func (t *table) gone(a *answer, r *reading) []string {
	if !a.complete {
		return a.removed
	}
	if r.partial {
		return nil
	}
	var names []string
	for name, k := range t.known {
		if k.state == current && !r.present[name] {
			names = append(names, name)
		}
	}
	return names
}

// remove makes a cluster one that does not exist. Its limits stay, unless the
// policy says otherwise.
func (t *table) remove(name string) []Event {
	k := t.known[name]
	if k == nil {
		return nil
	}
	k.version = ""
	if k.state == missing {
		return nil
	}
	if t.client.config.Deleted == DefaultLimit && k.name != "" {
		r := k.resource
		r.limits = defaultLimits
		k.accept(&r)
	}
	k.turn(missing, ErrNotFound)
	told := []Event{{Kind: Removed, Cluster: name, Limits: k.limits}}
	if len(k.members) == 0 {
		delete(t.known, name)
	}
	return told
}
