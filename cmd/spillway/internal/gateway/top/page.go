package top

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

// A Page is what many processes do at one time. Rates are over one window: of each process over Process.Seconds.
type Page struct {
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"` // the longest time that rates of a process are over
	Verdict Verdict   `json:"verdict"`

	Asked     int `json:"asked"`     // processes
	Answering int `json:"answering"` // of them, those with figures
	Measured  int `json:"measured"`  // of them, those with rates

	Rates // of all measured processes

	Reasons   []Reason  `json:"reasons"` // for which requests were rejected or lost, the most frequent first
	Routes    Top       `json:"routes"`
	Customers Top       `json:"customers"`
	Callers   Top       `json:"callers"`
	Processes []Process `json:"processes"` // the worst first
	Notes     []string  `json:"notes"`     // about this page
}

// A Reason is a reason for which requests were rejected or lost in all processes.
type Reason struct {
	Policy  string  `json:"policy"`
	Outcome string  `json:"outcome"`
	Reason  string  `json:"reason"`
	Mode    string  `json:"mode"` // in the mode observe, nothing was rejected
	Words   string  `json:"words"`
	Do      string  `json:"do"`
	Rate    Classes `json:"rate"`
}

// wording is what processes say about a reason.
type wording struct{ words, do string }

func addWords(to map[reason]wording, s *query.State) {
	for i := range s.Reasons {
		r := &s.Reasons[i]
		k := reason{r.Policy, r.Outcome, r.Reason, r.Mode}
		was := to[k]
		// The greater text: which process is asked first must not change the page.
		to[k] = wording{max(was.words, r.Words), max(was.do, r.Do)}
	}
}

// Bounds of the lists on a page.
const (
	mostReasons = 50
	mostNames   = 20
)

// newPage returns the page of processes.
func newPage(now time.Time, all []Process, words map[reason]wording, notes []string) *Page {
	p := &Page{Time: now, Asked: len(all), Processes: all, Notes: append([]string{}, notes...)}
	for i := range all {
		x := &all[i]
		if x.Problem == nil {
			p.Answering++
		}
		if x.Seconds > 0 {
			p.Measured++
			p.Seconds = max(p.Seconds, x.Seconds)
			p.add(&x.Rates)
		}
	}
	p.Reasons = sumReasons(all, words)
	for i, list := range []*Top{routes: &p.Routes, customers: &p.Customers, callers: &p.Callers} {
		*list = merge(all, i)
	}
	slices.SortStableFunc(p.Processes, worse)
	p.Verdict = judge(p)
	return p
}

// severity orders processes: processes that lose requests first, then processes without figures, then the others.
func (x *Process) severity() int {
	switch {
	case x.Problem == nil && x.Level == "bad":
		return 4
	case x.Problem != nil:
		return 3
	case x.Level == "warn":
		return 2
	case x.Level == "idle":
		return 0
	}
	return 1
}

func worse(a, b Process) int {
	return cmp.Or(cmp.Compare(b.severity(), a.severity()), cmp.Compare(b.bad(), a.bad()), cmp.Compare(b.Offered, a.Offered), cmp.Compare(a.Address, b.Address))
}

func sumReasons(all []Process, words map[reason]wording) []Reason {
	sums := make(map[reason]Classes)
	for i := range all {
		for k, rate := range all[i].reasons {
			sum := sums[k]
			for class, v := range rate {
				sum[class] += v
			}
			sums[k] = sum
		}
	}
	list := make([]Reason, 0, len(sums))
	for k, rate := range sums {
		w := words[k]
		list = append(list, Reason{k.policy, k.outcome, k.reason, k.mode, w.words, w.do, rate})
	}
	slices.SortFunc(list, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Rate.Sum(), a.Rate.Sum()), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Mode, b.Mode))
	})
	return list[:min(mostReasons, len(list))]
}

// A Top has the names with most rejections in all processes.
type Top struct {
	Names []Name `json:"names"` // the most frequent first
	// Others is the rate of the rejections that the lists of the processes count for no name. Each name may have up to so
	// much more.
	Others float64 `json:"others"`
}

// A Name is a customer, a caller or a route.
type Name struct {
	Name      string  `json:"name"`     // of customers empty: requests without one
	AtLeast   float64 `json:"at_least"` // rejections per second
	Would     float64 `json:"would"`    // of them, those in observe mode, which were let through
	Processes int     `json:"processes"`
	Reason    string  `json:"reason"` // the most frequent one
	Class     string  `json:"class"`  // likewise

	most float64 // of the most frequent reason and class
}

// merge adds up one list of all processes.
func merge(all []Process, list int) Top {
	sums := make(map[string]*Name)
	t := Top{Names: []Name{}}
	for i := range all {
		x := &all[i]
		listed := addNames(sums, x.names[list])
		t.Others += max(0, x.Rejected.Sum()+x.Would.Sum()-listed)
	}
	for _, n := range sums {
		t.Names = append(t.Names, *n)
	}
	slices.SortFunc(t.Names, func(a, b Name) int { return cmp.Or(cmp.Compare(b.AtLeast, a.AtLeast), cmp.Compare(a.Name, b.Name)) })
	for _, n := range t.Names[min(mostNames, len(t.Names)):] {
		t.Others += n.AtLeast
	}
	t.Names = t.Names[:min(mostNames, len(t.Names))]
	return t
}

// addNames adds the names of one process to the sums, and returns the sum of its rates.
func addNames(sums map[string]*Name, names map[name]float64) (listed float64) {
	seen := make(map[string]bool)
	for _, k := range slices.SortedFunc(maps.Keys(names), compareNames) {
		n, rate := sums[k.name], names[k]
		if n == nil {
			n = &Name{Name: k.name}
			sums[k.name] = n
		}
		if listed += rate; !seen[k.name] {
			seen[k.name] = true
			n.Processes++
		}
		n.AtLeast += rate
		if k.mode == "observe" {
			n.Would += rate
		}
		if rate > n.most {
			n.most, n.Reason, n.Class = rate, k.reason, k.class
		}
	}
	return listed
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.reason, b.reason), cmp.Compare(a.class, b.class), cmp.Compare(a.mode, b.mode))
}
