package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/human"
)

// A Verdict answers the questions of an incident: is it overloaded, who is hurt, why, and what to do now.
type Verdict struct {
	Level    string `json:"level"` // idle, ok, warn, bad
	Headline string `json:"headline"`
	Who      string `json:"who"`
	Why      string `json:"why"`
	Do       string `json:"do"`
}

// A group has the processes that say the same of themselves.
type group struct {
	level, kind string
	problem     bool
	bad         float64 // requests per second that were not served
	first       *Process
	n           int
}

// groups returns the groups of processes in trouble, the worst first. Processes are in order of severity.
func groups(all []Process) (list []group) {
	for i := range all {
		x := &all[i]
		if x.severity() < 2 {
			continue
		}
		at := slices.IndexFunc(list, func(g group) bool { return g.holds(x) })
		if at < 0 {
			at = len(list)
			list = append(list, group{level: x.Level, kind: x.Kind, problem: x.Problem != nil, first: x})
			if x.Problem != nil {
				list[at].kind = x.Problem.Kind
			}
		}
		list[at].n++
		list[at].bad += x.bad()
	}
	slices.SortStableFunc(list, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.first.severity(), a.first.severity()), cmp.Compare(b.bad, a.bad))
	})
	return list
}

// holds reports whether a process belongs to a group.
func (g *group) holds(x *Process) bool {
	switch {
	case x.Problem != nil || g.problem:
		return x.Problem != nil && g.problem && x.Problem.Kind == g.kind
	case x.Kind != "":
		return x.Level == g.level && x.Kind == g.kind
	}
	return x.Level == g.level && x.Headline == g.first.Headline
}

// judge returns the verdict on a page with its processes in order.
func judge(p *Page) Verdict {
	list := groups(p.Processes)
	harmed := slices.IndexFunc(list, func(g group) bool { return !g.problem })
	switch {
	case p.Asked == 0:
		return Verdict{Level: "bad", Headline: "No process is known.", Do: "Give addresses, or a name that has some with --discover."}
	case p.Answering == 0:
		return Verdict{Level: "bad", Headline: "No process answers.", Why: problems(list), Do: list[0].first.Problem.Do}
	case harmed >= 0:
		return p.harm(list, list[harmed])
	case len(list) > 0:
		return Verdict{Level: "warn", Headline: without(p.Asked-p.Answering, p.Asked), Why: problems(list), Do: list[0].first.Problem.Do}
	case p.Measured == 0:
		return Verdict{Level: "idle", Headline: "No rates yet.", Why: "A rate needs two answers."}
	case p.Offered == 0:
		return Verdict{Level: "idle", Headline: "No requests."}
	}
	return Verdict{Level: "ok", Headline: "All is well."}
}

// harm is judge for a fleet in which a group of processes has the most harm.
func (p *Page) harm(list []group, worst group) Verdict {
	v := Verdict{Level: worst.level, Headline: worst.first.Headline, Who: p.who(), Why: p.why(), Do: worst.first.Do}
	if p.Asked > 1 {
		v.Headline = subject(worst.n, p.Asked) + ": " + v.Headline
	}
	if v.Do == "" {
		if r := p.mainReason(); r != nil {
			v.Do = r.Do
		}
	}
	if missing := problems(list); missing != "" {
		v.Why = strings.TrimSpace(v.Why + " Without figures: " + missing)
	}
	return v
}

// subject names some of all processes.
func subject(n, of int) string {
	if n == of {
		return "All " + count(n) + " processes"
	}
	return count(n) + " of " + count(of) + " processes"
}

// without says how many processes have no figures.
func without(n, of int) string {
	verb := "have"
	if n == 1 {
		verb = "has"
	}
	return subject(n, of) + " " + verb + " no figures."
}

// problems counts the processes without figures by problem.
func problems(list []group) string {
	var parts []string
	for _, g := range list {
		if g.problem {
			parts = append(parts, fmt.Sprintf("%s (%s)", count(g.n), g.first.Problem.Text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}

// notable is the least share of the worst name in all rejections that makes it an answer to who.
const notable = 0.2

// who says which customer, caller and classes are rejected, or would be.
func (p *Page) who() string {
	rejected, text := p.Rejected, ""
	if rejected.Sum() == 0 {
		rejected, text = p.Would, "Would be rejected: "
	}
	if rejected.Sum() == 0 {
		return ""
	}
	all := p.Rejected.Sum() + p.Would.Sum()
	for _, list := range []struct {
		what string
		Top
	}{{"customer", p.Customers}, {"caller", p.Callers}} {
		if len(list.Names) > 0 && list.Names[0].Name != "" && list.Names[0].AtLeast >= notable*all {
			text += list.what + " " + middle(list.Names[0].Name, mostName) + ", "
		}
	}
	return text + classShares(rejected, p.Ended) + "."
}

// classShares returns the rate and the share of each class that was rejected, the lowest class first.
func classShares(rejected, ended Classes) string {
	var parts, none []string
	for class, rate := range rejected {
		name := (spillway.Criticality(class) + spillway.Sheddable).String()
		switch {
		case rate > 0:
			parts = append(parts, fmt.Sprintf("%s %s (%s)", name, human.PerSecond(rate), percent(rate, ended[class])))
		case ended[class] > 0:
			none = append(none, name)
		}
	}
	if len(none) > 0 {
		parts = append(parts, "none of "+human.Listed(none))
	}
	return strings.Join(parts, ", ")
}

// percent returns the share of a rate in another one.
func percent(part, of float64) string { return human.Percent(min(1, part/max(of, part, 1e-9))) }

// mainReason returns the most frequent reason that rejected or lost requests, or would have; nil without one.
func (p *Page) mainReason() *Reason {
	for i := range p.Reasons {
		if r := &p.Reasons[i]; r.Mode != "observe" || p.Rejected.Sum()+p.Lost+p.Gone == 0 {
			return r
		}
	}
	return nil
}

// why says the main reason, and what was lost.
func (p *Page) why() string {
	var parts []string
	if r := p.mainReason(); r != nil {
		text := fmt.Sprintf("%s, %s", r.Reason, human.PerSecond(r.Rate.Sum()))
		if r.Words != "" {
			text += ": " + r.Words
		}
		parts = append(parts, text+".")
	}
	if p.Lost > 0 {
		parts = append(parts, human.PerSecond(p.Lost)+" late or failed.")
	}
	if p.Gone > 0 {
		parts = append(parts, human.PerSecond(p.Gone)+" given up by clients.")
	}
	return strings.Join(parts, " ")
}

func count(n int) string { return human.Grouped(float64(n)) }

// inSeconds returns a time as people read it, in whole seconds.
func inSeconds(d time.Duration) string { return d.Round(time.Second).String() }
