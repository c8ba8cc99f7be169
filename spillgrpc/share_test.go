package spillgrpc

import (
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/metadata"
)

// afterWait is what a server says that has served a call after a wait.
var afterWait = balancer.DoneInfo{Trailer: metadata.Pairs(keyScope, "task")}

// limited are servers of which some can serve only so many calls per second.
type limited struct {
	all    []balancer.SubConn
	rates  []float64         // by connection; 0: any
	says   balancer.DoneInfo // to a call above that
	saved  []float64
	filled time.Time
	above  int
}

func (l *limited) done(sc balancer.SubConn) balancer.DoneInfo {
	now := time.Now()
	for i := range l.saved {
		l.saved[i] = min(l.saved[i]+now.Sub(l.filled).Seconds()*l.rates[i], 5)
	}
	l.filled = now
	for i, x := range l.all {
		if x != sc || l.rates[i] == 0 {
			continue
		}
		if l.saved[i] < 1 {
			l.above++
			return l.says
		}
		l.saved[i]--
	}
	return balancer.DoneInfo{}
}

// load makes 1,000 picks per second, and returns those of each connection per second.
func (l *limited) load(t *testing.T, p *picker, child *taking, seconds int) (perSecond []int) {
	t.Helper()
	perSecond = make([]int, len(l.all))
	for range 1000 * seconds {
		for i, n := range picks(t, p, child, 1, l.done) {
			perSecond[i] += n
		}
		time.Sleep(time.Millisecond)
	}
	for i := range perSecond {
		perSecond[i] /= seconds
	}
	return perSecond
}

func newLimited(child *taking, says balancer.DoneInfo, rates ...float64) *limited {
	return &limited{all: child.all, rates: rates, saved: make([]float64, len(rates)), says: says, filled: time.Now()}
}

// TestShare: an endpoint that says that its calls wait, or rejects some without a time, gets
// as many calls as it serves, and about one in a hundred more. The others share the rest
// evenly. When it serves all again, it gets all its turns within 20 s.
func TestShare(t *testing.T) {
	for name, says := range map[string]balancer.DoneInfo{
		"calls wait": afterWait, "rejected, time 0": busyFor("0", "task"), "rejected, 1 s": busyFor("1000", "task"), "rejected, 1 h": busyFor("3600000", "task"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				child := newTaking(4)
				p := newEjecting(child)
				l := newLimited(child, says, 0, 100, 0, 0)
				l.load(t, p, child, 10)
				if name == "rejected, 1 h" {
					l.load(t, p, child, 60) // for which it is left out first
				}
				l.above = 0
				got := l.load(t, p, child, 30)
				t.Logf("per second %v, %d above the limit in 30 s", got, l.above)
				if got[1] < 80 || got[1] > 102 || got[0] < 295 || got[2] < 295 || got[3] < 295 {
					t.Errorf("the endpoint serves 100 per second and gets %v", got)
				}
				if l.above > 60 {
					t.Errorf("%d calls of %d were above the limit, want 2 %% at most", l.above, 30*got[1])
				}
				l.rates[1] = 0
				l.load(t, p, child, 20)
				if got = l.load(t, p, child, 10); got[1] != 250 {
					t.Errorf("20 s after it has recovered: %v", got)
				}
			})
		})
	}
}

// TestSharesAreRelative: where all endpoints are above their limits, all have their turns, and one
// that serves less than the others has fewer, as before.
func TestSharesAreRelative(t *testing.T) {
	for _, row := range []struct {
		rates       []float64
		least, most []int
	}{
		{[]float64{100, 100, 100, 100}, []int{225, 225, 225, 225}, []int{275, 275, 275, 275}},
		{[]float64{200, 50, 200, 200}, []int{260, 30, 260, 260}, []int{320, 200, 320, 320}},
		{[]float64{100, 100, 0, 0}, []int{80, 80, 380, 380}, []int{102, 102, 420, 420}},
		{[]float64{100, 100, 100, 0}, []int{80, 80, 80, 680}, []int{102, 102, 102, 760}},
	} {
		inBubble(t, func(t *testing.T) {
			child := newTaking(4)
			p := newEjecting(child)
			l := newLimited(child, afterWait, row.rates...)
			l.load(t, p, child, 30)
			got := l.load(t, p, child, 30)
			t.Logf("limits %v: per second %v", row.rates, got)
			for i := range got {
				if got[i] < row.least[i] || got[i] > row.most[i] {
					t.Errorf("limits %v: per second %v, want %v to %v", row.rates, got, row.least, row.most)
				}
			}
		})
	}
}

// TestShareOfALiar: an endpoint that says of each call that it waited gets 2 % of its turns, and takes
// nothing else from the channel. What an answer says in another form is ignored.
func TestShareOfALiar(t *testing.T) {
	for _, row := range []struct {
		says        balancer.DoneInfo
		least, most int
	}{
		{afterWait, 3, 8},
		{balancer.DoneInfo{Trailer: metadata.Pairs(keyScope, "service")}, 250, 250},
		{balancer.DoneInfo{Trailer: metadata.Pairs(keyScope, "task", keyScope, "task")}, 250, 250},
		{balancer.DoneInfo{Trailer: metadata.Pairs(keyPushback, "1000")}, 250, 250},
	} {
		inBubble(t, func(t *testing.T) {
			child := newTaking(4)
			p := newEjecting(child)
			l := newLimited(child, row.says, 0, 1e-9, 0, 0)
			l.load(t, p, child, 20)
			if got := l.load(t, p, child, 20); got[1] < row.least || got[1] > row.most {
				t.Errorf("%v: per second %v", row.says.Trailer, got)
			}
		})
	}
}

// TestLoadedEndpoint: an endpoint that answers nothing gets calls until it has twice as many in
// flight as the others, and eight more; the others share the rest evenly. When it answers, it has
// its turns again.
func TestLoadedEndpoint(t *testing.T) {
	for _, n := range []int{1, 2, 4, 20} {
		inBubble(t, func(t *testing.T) {
			child := newTaking(n)
			p := newEjecting(child)
			var held []func(balancer.DoneInfo)
			got := make(map[balancer.SubConn]int)
			for range 1000 * n {
				r, err := p.Pick(balancer.PickInfo{})
				if err != nil {
					t.Fatal(err)
				}
				got[r.SubConn]++
				if r.SubConn == child.all[0] {
					held = append(held, r.Done)
				} else {
					r.Done(balancer.DoneInfo{})
				}
				if len(held) == 100 { // of a single one
					break
				}
			}
			if want := map[bool]int{true: 100, false: slack + 1}[n == 1]; len(held) != want {
				t.Errorf("of %d endpoints one has %d attempts in flight, want %d", n, len(held), want)
			}
			for i, sc := range child.all[1:] {
				if even := 1000*n/(n-1) - 10; got[sc] < even {
					t.Errorf("of %d endpoints number %d got %d calls, want %d at least", n, i+1, got[sc], even)
				}
			}
			for _, done := range held {
				done(balancer.DoneInfo{})
			}
			all := picks(t, p, child, 100*n, func(balancer.SubConn) balancer.DoneInfo { return balancer.DoneInfo{} })
			if all[0] != 100 || p.ejections.flight.Load() != 0 {
				t.Errorf("afterwards: %v, %d in flight", all, p.ejections.flight.Load())
			}
		})
	}
}
