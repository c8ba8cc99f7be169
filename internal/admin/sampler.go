package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/finite"
	"github.com/seed90641741/spillway/internal/admin/incidents"
	"github.com/seed90641741/spillway/internal/admin/slow"
)

const (
	meanTicks   = 10  // ticks that the mean and the quantiles are of
	minuteTicks = 60  // ticks that reasons are counted over
	history     = 900 // ticks that are kept for the charts
	maxStreams  = 16
	mostStreams = 4 // for one address
	backlog     = 4 // ticks that a stream may be behind
)

// A sampler makes a State from a Collector and a Proxy once per tick, and publishes it
// to its readers.
type sampler struct {
	with      Config // with its defaults
	started   time.Time
	state     atomic.Pointer[State]
	incidents *incidents.Log
	slow      *slow.Watch
	samples   []*sample     // of the last minute, the oldest first; used by tick alone, as steps
	steps     []Change      // of the clock
	stalled   time.Duration // since the last tick; used by the goroutine of the ticks alone

	mu      sync.Mutex
	rows    []Figures              // the oldest first
	streams map[chan []byte]string // the address of each
}

func newSampler(c Config, now time.Time) *sampler {
	c.Collector, c.Decisions = cmp.Or(c.Collector, collector.New()), cmp.Or(c.Decisions, decisions.New(nil))
	if c.Name == "" {
		c.Name, _ = os.Hostname() // without a name it stays empty
	}
	if c.Wall == nil {
		c.Wall = func(t time.Time) time.Time { return t.Round(0) }
	}
	s := &sampler{with: c, started: now, streams: make(map[chan []byte]string), incidents: incidents.New(c.Logger), slow: slow.New()}
	totals, details := c.Collector.Read()
	s.samples = []*sample{{at: now, wall: now.Round(0), totals: totals, levels: c.Source.Levels(now)}}
	s.state.Store(s.summarize(details))
	return s
}

// ago returns the sample of n ticks ago, or the first one.
func (s *sampler) ago(n int) *sample { return s.samples[max(0, len(s.samples)-1-n)] }

// tick takes a sample and sends its State to all streams.
func (s *sampler) tick(now time.Time) {
	totals, details := s.with.Collector.Read()
	x := &sample{at: now, wall: s.with.Wall(now), totals: totals, levels: s.with.Source.Levels(now), stalled: s.stalled}
	s.stalled = 0
	finite.All(&x.levels) // they are shown as JSON
	if s.with.Library {
		s.with.Collector.Offer(x.totals, inProgress(&x.levels))
	}
	s.watchClock(x)
	for _, g := range x.levels.Gates {
		x.peak += g.Peak
	}
	s.samples = append(s.samples, x)
	if len(s.samples) > minuteTicks+1 {
		s.samples = slices.Delete(s.samples, 0, 1)
	}
	st := s.summarize(details)
	s.state.Store(st)
	s.incidents.Tell(now, conditionsOf(st))
	s.tell(st)
}

// summarize makes the State of the last sample, and of the details that were read with it.
func (s *sampler) summarize(details collector.Details) *State {
	now, then, mean, minute := s.ago(0), s.ago(1), s.ago(meanTicks), s.ago(minuteTicks)
	l := &now.levels
	st := &State{
		Name: s.with.Name, Program: s.program(l),
		Time: now.wall, Started: s.started, Version: s.with.Version, Ready: s.with.Source.Ready() == nil, Levels: *l,
		Last: figures(then, now, mean), Mean: figures(mean, now, mean), Reasons: reasons(minute.totals, now.totals, &details, s.with.Library),
		Top: s.with.Decisions.Top(now.at, topRows), MongoAway: mongoAway(&mean.levels, l), Totals: now.totals, Details: details,
		Limits: s.limits(l), Counts: countsOf(now), Rejected: s.with.Decisions.Rejected(),
	}
	st.Gates, st.Clusters, st.Changes = peaks(s.samples), clusters(mean, now), s.changes(l)
	st.Last.Time, st.Mean.Time = s.axis(now.at), s.axis(now.at)
	for i := range meanTicks {
		st.Mean.Peak = max(st.Mean.Peak, s.ago(i).peak)
		st.Mean.Stalled += s.ago(i).stalled.Seconds() / st.Mean.Seconds
		st.Mean.Slowest = max(st.Mean.Slowest, milliseconds(s.ago(i).totals.Slowest))
	}
	s.explain(st)
	st.Last.Limits = make(map[string]float64, len(st.Limits))
	for _, x := range st.Limits {
		st.Last.Limits[x.Name] = x.Value
	}
	st.Notices = s.notices(st, l, now.at)
	if s.with.Library {
		st.Notices = append(st.Notices, withoutEnds(now.totals, &details)...)
	}
	st.Verdict = verdict(st, now.totals.Accounts.Sum() > 0 || st.Mean.InFlight > 0)
	st.Tiles = tiles(st)
	return st
}

// program returns which program has levels.
func (s *sampler) program(l *Levels) string {
	switch {
	case s.with.Library:
		return library
	case l.Service != nil:
		return "quota"
	default:
		return "proxy"
	}
}

// peaks returns the gates of the last sample, each with its peak of all samples.
func peaks(all []*sample) []Gate {
	type key struct{ listener, cluster string }
	most := make(map[key]int)
	for _, x := range all {
		for _, g := range x.levels.Gates {
			k := key{g.Listener, g.Cluster}
			most[k] = max(most[k], g.Peak, g.InFlight)
		}
	}
	gates := append([]Gate{}, all[len(all)-1].levels.Gates...) // not null, in JSON
	for i := range gates {
		gates[i].Peak = most[key{gates[i].Listener, gates[i].Cluster}]
	}
	return gates
}

// tell keeps the row of a State for the charts, and sends both to all streams. A slow stream
// misses them.
func (s *sampler) tell(st *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, st.Last)
	if len(s.rows) > history {
		s.rows = slices.Delete(s.rows, 0, 1)
	}
	if len(s.streams) == 0 {
		return
	}
	text := message("tick", st)
	for to := range s.streams {
		select {
		case to <- text:
		default:
		}
	}
}

// errStreams is returned at the maximum number of streams.
var errStreams = errors.New("there are as many streams as there may be: close a page")

// follow returns the first message of a new stream, and the channel of its ticks. The caller
// must end it with leave.
func (s *sampler) follow(address string) (first []byte, ticks chan []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, other := range s.streams {
		if other == address {
			own++
		}
	}
	if len(s.streams) >= maxStreams || own >= mostStreams {
		return nil, nil, errStreams
	}
	ticks = make(chan []byte, backlog)
	s.streams[ticks] = address
	return message("history", struct {
		Rows  []Figures `json:"rows"`
		State *State    `json:"state"`
	}{s.rows, s.state.Load()}), ticks, nil
}

func (s *sampler) leave(ticks chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, ticks)
}

func message(event string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil { // a number is none
		text = []byte("null")
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, text)
}
