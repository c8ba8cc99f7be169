// Package incidents writes one line of a log when a condition begins that an operator should know
// about, and one when it has ended, so that the log alone has what happened and when. It never
// writes a line for a request.
//
// A condition must last for [begins] before its line is written, and be absent for [ends] before it
// has ended: figures are means of ten seconds. A condition that comes and goes has a pair of lines
// per [pause] at most.
package incidents

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	begins = 3 * time.Second
	ends   = 10 * time.Second
	pause  = time.Minute
	// most is how many conditions are known at once; later ones have no line until others end.
	most = 64
)

// A Condition is something that an operator should know about.
type Condition struct {
	Kind     string // for programs
	Subject  string // what it is about: a cluster, a listener, a quota; empty: the whole proxy
	Headline string // a sentence
	Text     string // more of it
	Do       string // what an operator does about it; empty: the text says so
	Link     string // to the runbook; empty: there is none
}

type key struct{ kind, subject string }

func (c *Condition) key() key { return key{c.Kind, c.Subject} }

// state is how a condition stands.
type state struct {
	since  time.Time // it began
	seen   time.Time // it was there for the last time
	logged time.Time // the line of its beginning was written; zero: none
	open   bool      // and it has not ended
}

// A Log writes the lines. It is for one goroutine at a time; make one with [New].
type Log struct {
	logger *slog.Logger
	known  map[key]*state
}

// New returns a Log that writes to a logger.
func New(logger *slog.Logger) *Log { return &Log{logger: logger, known: make(map[key]*state)} }

// Tell gives the Log the present conditions.
func (l *Log) Tell(now time.Time, all []Condition) {
	for i := range all {
		l.see(now, &all[i])
	}
	for _, k := range slices.SortedFunc(maps.Keys(l.known), func(a, b key) int { return strings.Compare(a.kind+a.subject, b.kind+b.subject) }) {
		l.miss(now, k, l.known[k])
	}
}

// see takes note of a condition, and writes the line of its beginning when it is due.
func (l *Log) see(now time.Time, c *Condition) {
	s := l.known[c.key()]
	if s == nil {
		if len(l.known) >= most {
			return
		}
		s = &state{since: now}
		l.known[c.key()] = s
	}
	if !s.open && now.Sub(s.seen) >= ends && !s.logged.IsZero() {
		s.since = now
	}
	if s.seen = now; s.open || now.Sub(s.since) < begins || !s.logged.IsZero() && now.Sub(s.logged) < pause {
		return
	}
	s.open, s.logged = true, now
	l.logger.Warn("incident began", c.attrs()...)
}

// miss writes the line of the end of a condition when it is due, and forgets it when it may begin
// again at once.
func (l *Log) miss(now time.Time, k key, s *state) {
	if now.Sub(s.seen) < ends {
		return
	}
	if s.open {
		s.open = false
		c := Condition{Kind: k.kind, Subject: k.subject}
		l.logger.Info("incident ended", append(c.attrs(), "after", s.seen.Sub(s.since).Round(time.Second))...)
	}
	if s.logged.IsZero() || now.Sub(s.logged) >= pause {
		delete(l.known, k)
	}
}

// attrs returns the fields of the line of a beginning.
func (c *Condition) attrs() []any {
	all := []any{"kind", c.Kind}
	for _, field := range []struct{ name, value string }{
		{"subject", c.Subject}, {"what", c.Headline}, {"detail", c.Text}, {"do", c.Do}, {"runbook", c.Link},
	} {
		if field.value != "" {
			all = append(all, field.name, field.value)
		}
	}
	return all
}
