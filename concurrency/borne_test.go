package concurrency

import (
	"testing"
	"time"
)

// The queue that callers bear is that of the most urgent ones: of the last calls of a task, which have a tenth of the time of the first.
func TestUrgentRequestsDecideWhatIsBorne(t *testing.T) {
	l := newLimit(0, false)
	l.latency.reset(0, 0.01)
	for i := range 100 * round {
		if i%10 == 9 {
			l.start(0.16)
		} else {
			l.start(1.6)
		}
	}
	if got := l.borne(); got > 0.15 {
		t.Errorf("%v s are borne, want much less than without urgent requests, 0.36", got)
	}
	for range 100 * round * round {
		l.start(1.6)
	}
	if got := l.borne(); got < 0.39 || got > 0.41 {
		t.Errorf("%v s are borne where no request is urgent, want 0.4", got)
	}
}

// A queue that callers bear teaches no least latency: when they bear less, it is found.
func TestBorneQueueIsNoBaseLatency(t *testing.T) {
	p := newPool(t, Config{})
	p.fixed, p.deaf = true, 10*time.Second
	p.run(2*time.Second, 8, 200)
	p.run(3*time.Second, 8, 450)
	k := p.l.keys[1]
	if k.state != Open || k.latency.mean < 0.2 {
		t.Fatalf("%v, latency %v s: this is no test", k.state, k.latency.mean)
	}
	if got := k.latency.least(); got > 0.03 {
		t.Errorf("the least latency is %v s, want 0.02", got)
	}
}

// A queue that stood in one round stands in the next one, although its latency happens not to grow with the number in flight there: the
// least latency stays what it is, and the queue cannot become the usual latency, of which callers bear a multiple.
func TestQueueNeverBecomesUsual(t *testing.T) {
	l := newLimit(0, false)
	pass := func(shows bool, latency float64) {
		l.latency.mean, l.stands = latency, shows
		l.working, l.ended, l.served = 50, 1000, 1000
		l.advance(l.at + time.Second)
		l.whileOpen(0, false)
	}
	l.latency.reset(0, 0.01)
	l.rest, l.urgent = 1, 1
	pass(true, 0.02)
	pass(false, 0.1)
	if got := l.latency.least(); got != 0.01 {
		t.Errorf("after a round with a queue and one without, the least latency is %v s, want 0.01", got)
	}
	for range 10 {
		pass(false, 0.1)
	}
	if got := l.latency.least(); got != 0.1 {
		t.Errorf("after ten seconds without a queue, the least latency is %v s, want 0.1", got)
	}
}
