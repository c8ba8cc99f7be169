package top

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

const (
	// inFlight bounds the questions at once, and so the memory of their answers.
	inFlight = 256
	// lookupEvery is the time between two lookups of a name.
	lookupEvery = 10 * time.Second
	// lookupTimeout is how long a lookup may take.
	lookupTimeout = 5 * time.Second
)

// Config configures a [Fleet].
type Config struct {
	Targets []query.Target
	Lookups []query.Lookup // of names whose addresses are asked, too
	Client  *query.Client
	Window  time.Duration // of all rates
}

// A Fleet is the processes that are asked. Its methods are for one goroutine. Make one with [New], and close it.
type Fleet struct {
	config  Config
	cancel  context.CancelFunc // ends all questions
	ask     func(question)     // in a goroutine of its own
	running sync.WaitGroup
	free    chan struct{} // has a value for each question in flight
	answers chan answer

	members map[query.Target]*member
	found   []found
}

// found is what a lookup has found last.
type found struct {
	targets []query.Target
	err     error     // of the last lookup
	asked   time.Time // zero: not yet
	pending bool
}

// An answer is that of a process, or of a lookup.
type answer struct {
	at      time.Time
	of      query.Target
	state   *query.State
	problem *query.Problem

	lookup  int // -1: it is of a process
	targets []query.Target
	err     error
}

// New returns a Fleet. The first [Fleet.Round] asks the first questions.
func New(c Config) *Fleet {
	f := &Fleet{
		config: c, free: make(chan struct{}, inFlight), answers: make(chan answer),
		members: make(map[query.Target]*member), found: make([]found, len(c.Lookups)),
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.ask = cancel, func(q question) { f.running.Go(func() { f.answer(ctx, q) }) }
	f.choose()
	return f
}

// Close ends all questions.
func (f *Fleet) Close() {
	f.cancel()
	f.running.Wait()
}

// A question waits for an answer.
type question func(context.Context) answer

// answer asks a question when one more may be in flight, and hands its answer to a round.
func (f *Fleet) answer(ctx context.Context, q question) {
	select {
	case f.free <- struct{}{}:
		defer func() { <-f.free }()
	case <-ctx.Done():
		return
	}
	a := q(ctx)
	a.at = time.Now()
	select {
	case f.answers <- a:
	case <-ctx.Done():
	}
}

// Round asks all processes that have no question in flight, and waits for answers: for all, but no longer than until ctx
// ends. What comes later counts in the next round.
func (f *Fleet) Round(ctx context.Context) {
	now := time.Now()
	for i := range f.found {
		f.lookup(now, i)
	}
	f.askAll(now)
	for f.waits() {
		select {
		case a := <-f.answers:
			f.hear(a)
		case <-ctx.Done():
			return
		}
	}
}

// lookup begins a lookup if it is time.
func (f *Fleet) lookup(now time.Time, i int) {
	x := &f.found[i]
	if x.pending || !x.asked.IsZero() && now.Sub(x.asked) < lookupEvery {
		return
	}
	x.asked, x.pending = now, true
	f.ask(func(ctx context.Context) answer {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		targets, err := f.config.Lookups[i].Find(ctx)
		return answer{lookup: i, targets: targets, err: err}
	})
}

// askAll asks all members without a question in flight.
func (f *Fleet) askAll(now time.Time) {
	for t, m := range f.members {
		if !m.asked.IsZero() {
			continue
		}
		m.asked = now
		if m.fresh.IsZero() {
			m.fresh = now
		}
		f.ask(func(ctx context.Context) answer {
			s, p := f.config.Client.Fetch(ctx, t)
			return answer{of: t, lookup: -1, state: s, problem: p}
		})
	}
}

// waits reports whether a question is in flight.
func (f *Fleet) waits() bool {
	for _, m := range f.members {
		if !m.asked.IsZero() {
			return true
		}
	}
	return slices.ContainsFunc(f.found, func(x found) bool { return x.pending })
}

func (f *Fleet) hear(a answer) {
	if a.lookup >= 0 {
		x := &f.found[a.lookup]
		x.pending, x.err = false, a.err
		if a.err == nil { // otherwise the targets of the lookup before stay
			x.targets = a.targets
			f.choose()
			f.askAll(a.at)
		}
		return
	}
	if m, ok := f.members[a.of]; ok { // else DNS has it no more
		m.hear(a.at, a.state, a.problem)
	}
}

// choose updates the members: each target has one. Members that stay keep their history.
func (f *Fleet) choose() {
	all := slices.Clone(f.config.Targets)
	for _, x := range f.found {
		all = append(all, x.targets...)
	}
	members := make(map[query.Target]*member)
	for _, t := range query.Unique(all) {
		m, ok := f.members[t]
		if !ok {
			m = &member{target: t, history: history{window: f.config.Window}}
		}
		members[t] = m
	}
	f.members = members
}

// Page returns the page of what is known.
func (f *Fleet) Page(now time.Time) *Page {
	all := make([]Process, 0, len(f.members))
	words := make(map[reason]wording)
	for _, m := range f.members {
		all = append(all, m.process(now))
		if m.state != nil {
			addWords(words, m.state)
		}
	}
	var notes []string
	for i, x := range f.found {
		if x.err != nil {
			notes = append(notes, "The lookup of "+f.config.Lookups[i].Name+" failed: "+query.Plain(x.err.Error(), 200)+".")
		} else if !x.pending && len(x.targets) == 0 {
			notes = append(notes, f.config.Lookups[i].Name+" has no addresses.")
		}
	}
	if len(all) == query.MaxTargets {
		notes = append(notes, "Only the first "+count(query.MaxTargets)+" processes are asked.")
	}
	slices.SortFunc(all, func(a, b Process) int { return strings.Compare(a.Address, b.Address) })
	return newPage(now, all, words, notes)
}
