package shed

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/pace"
)

// The first and the last value of MaxWait are allowed, and the values next to them are not.
func TestMaxWaitAtItsBounds(t *testing.T) {
	for wait, valid := range map[time.Duration]bool{time.Millisecond: true, 10 * time.Second: true, time.Millisecond - 1: false, 10*time.Second + 1: false} {
		if _, err := New(Config{MaxWait: wait}); (err == nil) != valid {
			t.Errorf("MaxWait %v: %v", wait, err)
		}
	}
}

// A Ratio that does not exist is the least one.
func TestRatioOutOfRange(t *testing.T) {
	if r := Ratio(255); r.Float() != 0 || r.String() != "0" {
		t.Errorf("%v, %v", r.Float(), r)
	}
}

// Ten calls are enough for an accept ratio, nine are not.
func TestAcceptEvidence(t *testing.T) {
	for calls, want := range map[uint64]float64{9: 1, 10: 0} {
		if got := new(AcceptRatio).Observe(time.Unix(1e9, 0), calls, calls).Float(); got != want {
			t.Errorf("%d rejected calls: %v, want %v", calls, got, want)
		}
	}
}

// Nothing is short below the lowest threshold of utilization, while a processor is free.
func TestPlenty(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.calm.Store(true)
	for state, want := range map[State]bool{
		{Processors: 2, Runnable: 1, Utilization: 0.79}: true, {Processors: 2, Utilization: DefaultThresholds[0]}: false, {Processors: 2, Runnable: 2}: false,
	} {
		if s.plenty(&state, s.config.Load()) != want {
			t.Errorf("%+v: %v", state, !want)
		}
	}
}

// The demand of a caller is what it used, with the requests at work until now, or what its
// requests would take if all were admitted.
func TestDemandOfACaller(t *testing.T) {
	for _, row := range []struct {
		who  caller
		want float64 // after 3 s
	}{
		{caller{used: 1, fresh: 1, aging: 1}, 7}, {caller{used: 1, asked: 4, guess: 2}, 8},
		{caller{asked: 4, guess: 2, ended: 0.9, spent: 9}, 8}, {caller{asked: 4, guess: 2, ended: 1, spent: 3}, 12},
	} {
		if got := row.who.demand(3); got != row.want {
			t.Errorf("%+v demands %v, want %v", row.who, got, row.want)
		}
	}
	for who, want := range map[caller]bool{{asked: defended}: true, {asked: 1.4}: false, {asked: 1.4, aging: 1}: true} {
		if who.known() != want {
			t.Errorf("%+v is known: %v", who, !want)
		}
	}
}

// Of a hundred requests half end within the half-life: 50, less two deviations of 5. Requests
// that take no time leave at once.
func TestPlacesThatBecomeFree(t *testing.T) {
	who, halfLife := caller{fresh: 90, aging: 9, spent: 10, ended: 10}, math.Ln2*float64(time.Second)
	if got := who.leaves(1, time.Duration(halfLife)); math.Abs(got-40) > 1e-6 {
		t.Errorf("%v leave, want 40", got)
	}
	if got := new(caller).leaves(5, 0); got != 5 {
		t.Errorf("%v of 5 requests without a duration leave", got)
	}
}

// A peak is remembered for one to two seconds.
func TestPeak(t *testing.T) {
	var p peak
	p.add(0, 5)
	for _, row := range []struct {
		at   time.Duration
		want int
	}{{time.Second - 1, 5}, {time.Second, 5}, {2*time.Second - 1, 5}, {2 * time.Second, 0}} {
		if got := p.value(row.at); got != row.want {
			t.Errorf("after %v: %d, want %d", row.at, got, row.want)
		}
	}
	p.add(3*time.Second, 4)
	if got := p.value(5 * time.Second); got != 0 {
		t.Errorf("after two seconds without a value: %d", got)
	}
}

// At the first threshold less the ramp every class is served again.
func TestLevelsFallAtTheRamp(t *testing.T) {
	var l levels
	for _, row := range []struct{ utilization, lowest float64 }{{0.8, 0}, {0.825, 0.5}, {0.9, 1}, {0.81, 1}, {0.775, 0.5}, {0.75, 0}, {0.76, 0}} {
		if l.set(row.utilization, &DefaultThresholds); math.Abs(l[spillway.Sheddable.Index()]-row.lowest) > 1e-9 {
			t.Errorf("at %v: %v, want %v", row.utilization, l[0], row.lowest)
		}
	}
}

// decided is a thousand decisions, of which this share are rejections for lack of capacity.
func decided(rejected float64) decisions {
	return decisions{admitted: 1000 - 1000*rejected, full: 1000 * rejected}
}

// A rank is rejected for a higher one whose rejected share is above the noise, in proportion to the
// share.
func TestCascadeAtItsBounds(t *testing.T) {
	for _, row := range []struct {
		pressed, shut float64 // of rank 5, and of rank 4
	}{
		{noise, 0}, {2 * noise, 2 * noise / cut}, {cut / 2, 0.5}, {cut, 1},
	} {
		var c cascade
		c.ranks[5] = decided(row.pressed)
		if got := c.shut(4); math.Abs(got-row.shut) > 1e-9 {
			t.Errorf("%+v: %v of the rank are rejected", row, got)
		}
		if got := c.shut(5); got != 0 {
			t.Errorf("%+v: %v of the rank itself are rejected", row, got)
		}
	}
}

// Another configuration counts at once, also if the utilization stays the same.
func TestMeasureAfterAnUpdate(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	low := Config{Thresholds: [...]float64{0.1, 0.2, 0.3, 0.4}}
	s.measure(0.5, s.config.Load())
	s.measure(0.5, &low)
	if s.levels != (levels{1, 1, 1, 1}) {
		t.Errorf("levels %v at 0.5 with thresholds of 0.4 and less", s.levels)
	}
}

// What a queue has served is remembered while no throughput is known.
func TestServedWithoutAThroughput(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var a arrival
	s.examine(&a, time.Unix(1e9, 0), new(spillway.Call), 0, new(State), s.config.Load())
	a.queue.served = 5
	a = arrival{}
	s.examine(&a, time.Unix(1e9, 0), new(spillway.Call), 0, new(State), s.config.Load())
	if a.queue.served != 5 {
		t.Errorf("served %v, want 5", a.queue.served)
	}
}

// Counting ends with the epoch in which the last rejection was two seconds ago, and a turn takes as
// long as a request that is parked.
func TestEpochsOfCallers(t *testing.T) {
	for at, want := range map[time.Duration]bool{window - 1: true, window: false} {
		var c callers
		c.rejected(0, 0)
		if c.advance(at, 0); c.active != want {
			t.Errorf("%v after the last rejection: active %v", at, c.active)
		}
	}
	var c callers
	for i, row := range []struct {
		parked time.Duration
		turns  int
	}{{0, 0}, {2*longEpoch + 1, 0}, {3 * longEpoch, 1}, {longEpoch + 1, 1}, {2 * longEpoch, 2}} {
		at := time.Duration(i+1) * longEpoch
		c.rejected(at-longEpoch, 0)
		if c.advance(at, row.parked); c.turns != row.turns {
			t.Errorf("epoch %d, parked after %v: %d turns, want %d", i, row.parked, c.turns, row.turns)
		}
	}
}

// A caller with exactly the fair share is within it. Enough admissions make it known.
func TestFairShareAtItsBounds(t *testing.T) {
	var c callers
	c.rejected(0, 0)
	c.share = 2
	who := c.find(7)
	*who = caller{flow: 7, asked: 2, last: 2}
	if within, _ := c.judge(7, 0); !within {
		t.Error("a caller with the fair share is above it")
	}
	who.last = math.Nextafter(2, 3)
	if within, _ := c.judge(7, 0); within {
		t.Error("a caller with more than the fair share is within it")
	}
	for recent, known := range map[float64]bool{enough: true, math.Nextafter(enough, 0): false} {
		c.recent, c.rate, c.seconds = recent, 1, 1
		who.used = 5
		if c.divide(); c.shares() != known {
			t.Errorf("after %v admissions: the share is known: %v", recent, !known)
		}
	}
}

// atWork is a limit with so many requests at work.
type atWork struct {
	Limit

	n int
}

func (l atWork) Working() (working, parked int) { return l.n, 0 }

// Other goroutines keep the processors busy if no request began for a time slice, and fewer requests
// than processors are at work: of callers within their fair share, if the waiter's caller is one.
func TestStalledAtItsBounds(t *testing.T) {
	for _, row := range []struct {
		since           time.Duration
		rank            int
		working, within int
		want            bool
	}{
		{slice - 1, 5, 0, 0, false}, {slice, 5, 5, 0, true}, {slice, 5, 5, 1, true}, {slice, 5, 0, 2, false}, {slice, 4, 1, 5, true}, {slice, 4, 2, 0, false},
	} {
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.began, s.at = time.Second, time.Second+row.since
		q := s.queue(0)
		q.callers[2].groups[1].fresh = row.within
		c := Config{Limit: atWork{n: row.working}}
		if got := s.stalled(&c, State{Processors: 2}, &Waiter{queue: q, order: orderOf(row.rank, 0, 0)}); got != row.want {
			t.Errorf("%+v: stalled is %v", row, got)
		}
	}
}

// The first and the last thresholds that are allowed, and the ones next to them.
func TestThresholdsAtTheirBounds(t *testing.T) {
	half := 0.5
	next := half + ramp - 1e-9 // as it is computed
	for thresholds, valid := range map[[spillway.Criticalities]float64]bool{
		{ramp, 0.2, 0.3, 0.4}: false, {math.Nextafter(ramp, 1), 0.2, 0.3, 0.4}: true,
		{0.2, 0.3, 0.4, 100}: true, {0.2, 0.3, 0.4, math.Nextafter(100, 200)}: false,
		{half, next, 0.7, 0.8}: true, {half, math.Nextafter(next, 0), 0.7, 0.8}: false,
	} {
		if _, err := New(Config{Thresholds: thresholds}); (err == nil) != valid {
			t.Errorf("%v: %v", thresholds, err)
		}
	}
}

// Where chance decides, as many requests are rejected as the share says.
func TestRejectAtItsBounds(t *testing.T) {
	for _, row := range []struct {
		a       arrival
		at      time.Duration
		level   float64 // of the class
		pressed float64 // of the rank
		random  float64
		want    cause
	}{
		{a: arrival{late: true, pass: 1}, at: lately - 1, want: late}, {a: arrival{late: true, pass: 1}, at: lately, want: admitted},
		{a: arrival{pass: 1}, level: 0.5, random: 0.49, want: utilized}, {a: arrival{pass: 1}, level: 0.5, random: 0.5, want: admitted},
		{a: arrival{pass: 0.5}, pressed: 0.5, random: 0.49, want: excessive}, {a: arrival{pass: 0.5}, pressed: 0.5, random: 0.5, want: admitted},
		{a: arrival{pass: 0.5}, pressed: noise, want: admitted},
	} {
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		row.a.queue = s.queue(0)
		row.a.queue.full.lasts = 1
		row.a.queue.cascade.ranks[0] = decided(row.pressed)
		s.at, s.hurried, s.levels[0] = row.at, 0, row.level
		if got := s.reject(&row.a, func() float64 { return row.random }); got != row.want {
			t.Errorf("%+v: reason %v", row, got)
		}
		if e := s.rejection(late, &arrival{left: 0.1}, s.config.Load()); e.Level != 0 {
			t.Errorf("level %v without a fastest response", e.Level)
		}
	}
}

// The bounds at which waits become short, and a queue is calm.
func TestQueueAtItsBounds(t *testing.T) {
	q := new(queue)
	for short, want := range map[int]time.Duration{0: math.MaxInt64, 10: 200 * time.Millisecond} {
		q.short, q.marginal = short, 1
		if got := q.turn(1, 10, 100); got != want {
			t.Errorf("in a queue for %d a turn is %v, want %v", short, got, want)
		}
	}
	for stands, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Second + 1: 50 * time.Millisecond} {
		q.full.lasts = stands
		if got := q.wait(time.Second, 0.1); got != want {
			t.Errorf("in a queue that stands for %v the maximum wait is %v, want %v", stands, got, want)
		}
	}
	for _, row := range []struct {
		pressed, served float64
		waiters         int
		want            bool
	}{{noise, 0, 100, true}, {2 * noise, 0, 0, false}, {0, 10, 8, true}, {0, 10, 9, false}} {
		q.cascade.ranks[0], q.served, q.n = decided(row.pressed), row.served, row.waiters
		if q.calm() != row.want {
			t.Errorf("%+v: calm is %v", row, !row.want)
		}
	}
	q.callers[0].groups[0].fresh = 1
	if q.keeps(0, 0, time.Second, 0) {
		t.Error("places are kept for nobody")
	}
}

// Callers are told apart while requests wait, or a rejection was for a caller.
func TestTellsCallersApart(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s.TellsCallersApart() {
		t.Error("callers are told apart without reason")
	}
	s.waiting.Store(1)
	if !s.TellsCallersApart() {
		t.Error("callers are not told apart while a request waits")
	}
}

// In a burst a queue has a place for each request that the processors could take in.
func TestPlacesInABurst(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.processors = 2
	if got := s.places(s.queue(0), 0); got != 2*crowd {
		t.Errorf("%d places, want %d", got, 2*crowd)
	}
	for lasts, want := range map[time.Duration]bool{burst - 1: true, burst: false} {
		q := &queue{limited: true, full: standing{lasts: lasts}}
		if got := s.places(q, 0); (got == 2*crowd) != want {
			t.Errorf("%d places behind a limit after %v", got, lasts)
		}
	}
}

// Each cause says what a client and an operator learn, and no two say the same.
func TestCauses(t *testing.T) {
	seen := make(map[string]bool)
	for why := admitted + 1; int(why) < len(causes); why++ {
		c := causes[why]
		if c.reason == spillway.ReasonNone || c.unit == "" || seen[c.advice] || (c.setting != "") != (c.reason == spillway.ReasonMaxWait) {
			t.Errorf("cause %d: %+v", why, c)
		}
		seen[c.advice] = true
	}
}

// entering is a limit that notes the class of the call that enters.
type entering struct {
	Limit

	class spillway.Criticality
}

func (*entering) Ask(time.Time, string) pace.Pace {
	return pace.Pace{Free: true, Left: math.Inf(1)}
}

func (l *entering) Enter(_ time.Time, call spillway.Call) spillway.Ticket {
	l.class = call.Criticality
	return spillway.Ticket{}
}

// A waiter enters the limit with its class.
func TestClassOfAWaiter(t *testing.T) {
	for rank := range ranks {
		limit := new(entering)
		s, err := New(Config{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		q := s.queue(0)
		q.add(&Waiter{queue: q, order: orderOf(rank, 0, 0)})
		s.waiting.Store(1)
		if w, _ := s.Next(time.Unix(1e9, 0), State{Processors: 2}); w == nil || limit.class != spillway.Sheddable+spillway.Criticality(rank/2) {
			t.Errorf("a waiter of rank %d enters as %v", rank, limit.class)
		}
	}
}

// The depth grows while the processors are idle too often, returns to the formula while they are
// not, and at once where nothing is rejected.
func TestDepthFollowsWhatIsLost(t *testing.T) {
	d := depth{factor: 1}
	note := func(n int, starved bool, rejected float64) float64 {
		for range n {
			d.note(starved, rejected)
		}
		return d.factor
	}
	for _, row := range []struct {
		n        int
		starved  bool
		rejected float64
		from, to float64
	}{
		{1, true, 0.5, 1.24, 1.25}, {100, true, 0.5, deepest / shallow, deepest / shallow}, {1000, false, 0.5, 1, 1},
		{1, true, 0.9, 1.04, 1.05}, {1, true, noise, 1, 1}, {20, true, 0.5, 20, deepest / shallow}, {1, true, 0, 1, 1},
	} {
		if got := note(row.n, row.starved, row.rejected); got < row.from || got > row.to {
			t.Errorf("%+v: factor %v", row, got)
		}
	}
	for rejected, want := range map[float64]float64{0: 2 * deepest, 0.5: 2 * 5.66, 0.9: 4 * shallow} {
		if got := d.of(rejected, 4); math.Abs(got-want) > 0.01 {
			t.Errorf("for four processors, %v rejected: %v, want %v", rejected, got, want)
		}
	}
}

// After any time without requests nothing is rejected any more, also if that time has more intervals
// than an int holds.
func TestCascadeForgets(t *testing.T) {
	for _, after := range []time.Duration{2 * time.Second, time.Hour, 3e9 * burst} {
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1e9, 0)
		s.advance(now)
		c := &s.queue(0).cascade
		c.ranks[5] = decided(0.9)
		if c.shut(4) < 1 {
			t.Fatalf("at first %v of a lower rank are rejected", c.shut(4))
		}
		if s.advance(now.Add(after)); c.shut(4) != 0 || c.above(0) > noise {
			t.Errorf("after %v %v of a lower rank are rejected, and %v count as rejected", after, c.shut(4), c.above(0))
		}
	}
}
