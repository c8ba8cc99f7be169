package main

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/seed90641741/spillway/internal/thorough"
)

// A diary records the events of requests, which it names by their keys.
type diary struct {
	Algorithm
	p     *Process
	lines []string
}

func keep(d *diary, inner Maker) Maker {
	return func(p *Process) Algorithm {
		d.p, d.Algorithm = p, inner(p)
		return d
	}
}

func (d *diary) note(what string, r *Request) {
	d.lines = append(d.lines, fmt.Sprintf("%v %s %d", d.p.Now(), what, r.Key))
}

func (d *diary) Arrive(r *Request) {
	d.note("arrives", r)
	d.Algorithm.Arrive(r)
}

func (d *diary) Finish(r *Request, served bool) {
	what := "served"
	if !served {
		what = "abandoned"
	}
	d.note(what, r)
	d.Algorithm.Finish(r, served)
}

// sent are requests at given times, with the keys 0, 1 and so on.
func sent(p *Process, b *Backend, at ...Time) (list []*Request) {
	for k, t := range at {
		r := &Request{Key: k, Service: 20 * ms, Deadline: 50 * ms, Backend: b}
		list = append(list, r)
		p.at(t, func(at Time) { p.send(at, r) })
	}
	return list
}

// rehearse runs a small scenario and compares what happens.
func rehearse(t *testing.T, maker Maker, fill func(p *Process), want ...string) *Result {
	t.Helper()
	var d diary
	r := simulate(&Scenario{End: sec, Fill: fill}, 1, keep(&d, maker))
	if !slices.Equal(d.lines, want) {
		t.Errorf("got\n%q\nwant\n%q", d.lines, want)
	}
	return r
}

// One slot and three requests: the second waits in the pool.
func TestPool(t *testing.T) {
	r := rehearse(t, newNone, func(p *Process) { sent(p, newPool(1), 0, 10*ms, 100*ms) },
		"0s arrives 0", "10ms arrives 1", "20ms served 0", "40ms served 1", "100ms arrives 2", "120ms served 2")
	if r.Offered != 3 || r.Good != 3 || r.Rejected != 0 {
		t.Errorf("%+v", r.Tally)
	}
}

// A limit of 2 at one slot rejects the third request. The fourth one waits for the
// second and is late.
func TestStaticByHand(t *testing.T) {
	r := rehearse(t, newStatic(2), func(p *Process) {
		list := sent(p, newPool(1), 0, 5*ms, 10*ms, 25*ms)
		list[3].Deadline = 30 * ms
	}, "0s arrives 0", "5ms arrives 1", "10ms arrives 2", "20ms served 0", "25ms arrives 3", "40ms served 1", "60ms served 3")
	if r.Offered != 4 || r.Good != 2 || r.Rejected != 1 || r.Late != 1 || r.Keys[2].Rejected != 1 || r.Keys[3].Good != 0 {
		t.Errorf("%+v", r)
	}
	if o := (oracle{Tally: Tally{Good: 4}}).score(r); o.Percent != 50 || o.False != 25 {
		t.Errorf("%v%% of the oracle, %v%% rejected in excess", o.Percent, o.False)
	}
}

// During a stall backends finish and clients send. The process handles both at the
// end, in order, and only then starts the queued request.
func TestStall(t *testing.T) {
	r := rehearse(t, newNone, func(p *Process) {
		p.stalls = []span{{15 * ms, 45 * ms}}
		sent(p, newPool(1), 0, 10*ms, 30*ms)
	}, "0s arrives 0", "10ms arrives 1", "45ms served 0", "45ms arrives 2", "65ms served 1", "85ms served 2")
	if r.Good != 1 || r.Late != 2 {
		t.Errorf("good %d, late %d: times count from when the client sent", r.Good, r.Late)
	}
}

// Heartbeats come every 10 ms, once at the end of a stall, and 100-300 ms late while
// the process is short of CPU.
func TestHeartbeats(t *testing.T) {
	var beats []Time
	simulate(&Scenario{End: 900 * ms, Fill: func(p *Process) {
		p.stalls = []span{{25 * ms, 95 * ms}}
		p.starved = []span{{300 * ms, 600 * ms}}
	}}, 1, func(p *Process) Algorithm { return &drum{none: none{p}, beats: &beats} })
	if want := []Time{0, 10 * ms, 20 * ms, 95 * ms, 105 * ms}; !slices.Equal(beats[:5], want) {
		t.Errorf("heartbeats at %v, want %v", beats[:5], want)
	}
	for i, b := range beats[1:] {
		late := b - beats[i] - heartbeat
		if due := beats[i] + heartbeat; due >= 300*ms && due < 600*ms && (late < 100*ms || late > 300*ms) {
			t.Errorf("the heartbeat due at %v came %v late", due, late)
		} else if due >= 600*ms && late != 0 {
			t.Errorf("the heartbeat due at %v came %v late", due, late)
		}
	}
}

type drum struct {
	none
	beats *[]Time
}

func (d *drum) Heartbeat() { *d.beats = append(*d.beats, d.p.Now()) }

// A client that leaves frees its place in the queue of the pool, but not a busy slot.
func TestLeave(t *testing.T) {
	r := rehearse(t, newNone, func(p *Process) {
		list := sent(p, newPool(1), 0, 0, 0)
		list[0].Patience, list[1].Patience = 5*ms, 10*ms
	}, "0s arrives 0", "0s arrives 1", "0s arrives 2", "10ms abandoned 1", "20ms abandoned 0", "40ms served 2")
	if r.Left != 2 || r.Good != 1 {
		t.Errorf("left %d, good %d", r.Left, r.Good)
	}
}

// A suspended request reads its body before it uses a slot.
func TestBody(t *testing.T) {
	rehearse(t, newNone, func(p *Process) {
		list := sent(p, newPool(1), 0, 10*ms, 20*ms)
		list[0].Body, list[2].Body, list[2].Patience = 50*ms, 50*ms, 40*ms
	}, "0s arrives 0", "10ms arrives 1", "20ms arrives 2", "30ms served 1", "60ms abandoned 2", "70ms served 0")
}

// A pool that grows serves its queue immediately. A pool that shrinks finishes the
// requests in service.
func TestResize(t *testing.T) {
	rehearse(t, newNone, func(p *Process) {
		b := newPool(2)
		sent(p, b, 0, 0, 0, 0)
		p.at(10*ms, func(Time) { p.resize(b, 1) })
		p.at(30*ms, func(Time) { p.resize(b, 2) })
	}, "0s arrives 0", "0s arrives 1", "0s arrives 2", "0s arrives 3",
		"20ms served 0", "20ms served 1", "40ms served 2", "50ms served 3")
}

// A stream is good when it opens. A looping client sends again after each answer.
func TestStreamsAndLoops(t *testing.T) {
	r := simulate(&Scenario{End: sec, Fill: func(p *Process) {
		b, rng := newPool(1), p.random()
		p.at(0, func(at Time) { p.send(at, stream(b, 0)(at, rng)) })
		p.at(0, func(at Time) { p.send(at, stream(b, 1)(at, rng)) })
		p.loop(constant(80*ms), request(noQueue(), 2, constant(20*ms), sec))
	}}, 1, newNone)
	for k, want := range []Tally{{Offered: 1, Good: 1}, {Offered: 1}, {Offered: 10, Good: 10}} {
		if r.Keys[k] != want {
			t.Errorf("key %d: %+v, want %+v", k, r.Keys[k], want)
		}
	}
}

// Equal seeds give equal tables with any number of processors. Other seeds give
// other tables.
func TestDeterminism(t *testing.T) {
	list, names := randoms(4, 100), []string{"S1 2x", "S1r", "S8d", "S12"}
	if !thorough.Enabled() {
		list, names = list[:1], names[:1]
	}
	for _, name := range names {
		sc := *prefixed(scenarios, name)[0]
		sc.Limits = []int{8, 32} // for speed
		list = append(list, &sc)
	}
	table := func(from uint64) string {
		var b bytes.Buffer
		s := seeds{n: 1, from: from}
		rows := evaluate(list, algorithms(), s, nil)
		printTable(&b, rows, algorithms(), s)
		printAbout(&b, rows)
		printKeys(&b, rows, algorithms())
		return b.String()
	}
	first := table(0)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if second := table(0); first != second {
		t.Errorf("the same seeds, once\n%s\nand once\n%s", first, second)
	}
	if first == table(2) {
		t.Error("other seeds give the same table")
	}
}

// All algorithms get the same requests.
func TestSameArrivals(t *testing.T) {
	sc := prefixed(scenarios, "S21")[0]
	want := simulate(sc, 1, newNone)
	for _, v := range algorithms() {
		got := simulate(sc, 1, v.maker)
		for c := range want.Classes {
			if got.Classes[c].Offered != want.Classes[c].Offered {
				t.Errorf("%s: %d requests of class %d, none had %d", v.name, got.Classes[c].Offered, c, want.Classes[c].Offered)
			}
		}
	}
}

// Every request ends exactly once.
func TestNothingIsLost(t *testing.T) {
	long(t)
	for _, sc := range append(slices.Clone(randoms(thorough.Seeds(2, 6), 500)), prefixed(scenarios, "S9")...) {
		patient := *sc
		patient.Grace = 1000 * sec
		for _, v := range algorithms() {
			r := simulate(&patient, 1, v.maker)
			if ends := r.latency.n + r.Rejected + r.Left; ends != r.Offered || r.Good+r.Late != r.latency.n {
				t.Errorf("%s, %s: %d answers, %d good, %d late, %d rejected, %d left of %d",
					sc.Name, v.name, r.latency.n, r.Good, r.Late, r.Rejected, r.Left, r.Offered)
			}
		}
	}
}
