package top

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
	"github.com/seed90641741/spillway/internal/admin/runbook"
)

// Patience is how long a process without a new answer keeps its figures.
const Patience = 5 * time.Second

// young is how long a process is said to have been started.
const young = time.Minute

// Classes is a rate for each criticality, from SHEDDABLE to CRITICAL_PLUS.
type Classes [spillway.Criticalities]float64

// Sum returns the rate of all classes.
func (c Classes) Sum() (s float64) {
	for _, v := range c {
		s += v
	}
	return s
}

// Rates are requests per second.
type Rates struct {
	Offered  float64 `json:"offered"`
	Served   float64 `json:"served"`
	Lost     float64 `json:"lost"`        // late, failed, or rejected by the upstream
	Gone     float64 `json:"client_gone"` // clients gave them up
	Rejected Classes `json:"rejected"`
	Would    Classes `json:"would_reject"` // where gates only observe
	Ended    Classes `json:"ended"`        // with any outcome
}

func (r *Rates) add(x *Rates) {
	r.Offered += x.Offered
	r.Served += x.Served
	r.Lost += x.Lost
	r.Gone += x.Gone
	for class := range r.Ended {
		r.Rejected[class] += x.Rejected[class]
		r.Would[class] += x.Would[class]
		r.Ended[class] += x.Ended[class]
	}
}

// bad is what was not served.
func (r *Rates) bad() float64 { return r.Lost + r.Gone + r.Rejected.Sum() }

// ratesOf returns the rates between two samples.
func ratesOf(then, now *query.Counts, seconds float64) (r Rates) {
	per := func(then, now uint64) float64 { return float64(now-then) / seconds }
	r.Offered = per(then.Offered, now.Offered)
	was, is := &then.Ended, &now.Ended
	r.Served = per(was.Served.Sum(), is.Served.Sum())
	r.Lost = per(was.Late.Sum()+was.Failed.Sum()+was.RejectedUpstream.Sum(), is.Late.Sum()+is.Failed.Sum()+is.RejectedUpstream.Sum())
	r.Gone = per(was.GoneWaiting.Sum()+was.GoneSent.Sum(), is.GoneWaiting.Sum()+is.GoneSent.Sum())
	for class := range r.Ended {
		r.Rejected[class] = per(was.Rejected[class], is.Rejected[class])
		if now.Would[class] >= then.Would[class] {
			r.Would[class] = per(then.Would[class], now.Would[class])
		}
		for i, of := range now.Accounts() {
			r.Ended[class] += per(then.Accounts()[i][class], of[class])
		}
	}
	return r
}

// A Process is one process on a page.
type Process struct {
	Address string    `json:"address"`
	Name    string    `json:"name"`
	Program string    `json:"program"` // proxy, quota or library
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Mode    string    `json:"mode"`

	// Problem is why there are no figures, nil if there are.
	Problem *query.Problem `json:"problem"`
	Note    string         `json:"note"` // about the figures: that there was no answer now, or that it was started 3s ago
	Level   string         `json:"level"`
	Kind    string         `json:"kind"`
	// Headline is what the process says of itself, and Do what to do about it.
	Headline string `json:"headline"`
	Do       string `json:"do"`

	Seconds float64 `json:"seconds"` // that the rates are over; 0: no rates yet
	Rates
	P99      *float64 `json:"p99_ms"`
	InFlight float64  `json:"in_flight"`
	Limit    *float64 `json:"limit"`

	stale   bool // there was no answer now
	reasons map[reason]Classes
	names   [lists]map[name]float64
}

// A member is a process that is asked again and again.
type member struct {
	target  query.Target
	asked   time.Time // since when an answer is awaited; zero: none is
	state   *query.State
	problem *query.Problem // of the last answer
	heard   time.Time      // of the last answer
	fresh   time.Time      // of the last answer with new figures, or of the first question
	again   bool           // it was started again since it is known
	history
}

// hear takes an answer.
func (m *member) hear(now time.Time, s *query.State, p *query.Problem) {
	m.asked, m.heard, m.problem = time.Time{}, now, p
	if p != nil {
		return
	}
	fresh, restarted := m.take(now, s)
	m.again = m.again || restarted
	if fresh {
		m.fresh = now
	}
	m.state = s
}

// trouble returns why the member has no figures, and what to say about the figures that it has.
func (m *member) trouble(now time.Time) (p *query.Problem, note string) {
	switch {
	case !m.asked.IsZero() && (m.state == nil && m.problem == nil || now.Sub(m.asked) > Patience):
		text := "no answer for " + inSeconds(now.Sub(m.asked))
		return &query.Problem{Kind: query.Timeout, Text: text, Do: "Look at its host and its network."}, ""
	case m.problem != nil && (m.state == nil || now.Sub(m.fresh) > Patience):
		return m.problem, ""
	case m.heard.Sub(m.fresh) > Patience:
		text := "its figures have not changed for " + inSeconds(m.heard.Sub(m.fresh))
		return &query.Problem{Kind: query.Stalled, Text: text, Do: "It lacks processor time: give it more."}, ""
	case m.problem != nil:
		return nil, m.problem.Text
	}
	return nil, m.age()
}

// age says that a process was started a short time ago.
func (m *member) age() string {
	age := m.state.Time.Sub(m.state.Started)
	switch {
	case age < 0 || age >= young:
		return ""
	case m.again:
		return "started again " + inSeconds(age) + " ago"
	}
	return "started " + inSeconds(age) + " ago"
}

// process returns the line of a member.
func (m *member) process(now time.Time) Process {
	p := Process{Address: m.target.Address}
	p.Problem, p.Note = m.trouble(now)
	if s := m.state; s != nil {
		p.Name, p.Program, p.Version, p.Started, p.Mode = s.Name, s.Program, s.Version, s.Started, s.Mode
	}
	if p.Problem == nil {
		p.stale = m.problem != nil
		p.figures(m)
	}
	return p
}

// figures sets what the last answers say.
func (x *Process) figures(m *member) {
	s := m.state
	x.P99, x.InFlight, x.Limit = s.Mean.P99, s.Mean.InFlight, s.Mean.Limit
	then, now, seconds := m.span()
	x.Seconds = seconds
	if seconds > 0 {
		x.Rates = ratesOf(&then.counts, &now.counts, seconds)
		x.reasons = reasonRates(then, now, seconds)
		for i := range x.names {
			x.names[i] = nameRates(then.names[i], now.names[i], seconds)
		}
	}
	x.Level, x.Kind, x.Headline, x.Do = s.Verdict.Level, s.Verdict.Kind, s.Verdict.Headline, x.advice(s)
}

// advice returns what to do about the state of a process: what it says itself, or what the runbook says.
func (x *Process) advice(s *query.State) string {
	condition, _ := runbook.Condition(s.Verdict.Kind)
	do, calm := cmp.Or(s.Verdict.Do, condition.Do), s.Verdict.Level != "warn" && s.Verdict.Level != "bad"
	switch {
	case do != "" || calm:
		return do
	case x.Would.Sum() > x.Rejected.Sum():
		return "Set mode: enforce, so that gates reject what they only count now."
	case len(s.Notices) > 0:
		return s.Notices[0].Text
	}
	return ""
}

func reasonRates(then, now *sample, seconds float64) map[reason]Classes {
	all := make(map[reason]Classes, len(now.reasons))
	for k, is := range now.reasons {
		var c Classes
		for class, was := range then.reasons[k] {
			c[class] = max(is[class]-was, 0) / seconds
		}
		if c.Sum() > 0 {
			all[k] = c
		}
	}
	return all
}

func nameRates(then, now map[name]uint64, seconds float64) map[name]float64 {
	all := make(map[name]float64, len(now))
	for k, is := range now {
		was := then[k]
		if was > is { // it has left the list in between, and come back
			was = 0
		}
		if is > was {
			all[k] = float64(is-was) / seconds
		}
	}
	return all
}
