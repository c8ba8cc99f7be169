package concurrency

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// clients wait for their answers. A client sends again when it is answered, or a pause after it was rejected.
type clients struct {
	*pool
	n       int
	pause   time.Duration
	pausing []time.Time // until when
}

func (c *clients) loop(d time.Duration, slots int) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(time.Millisecond) {
		c.finish()
		c.pausing = slices.DeleteFunc(c.pausing, func(until time.Time) bool { return !until.After(c.now) })
		for len(c.queue)+len(c.busy)+len(c.pausing) < c.n {
			if !c.send() {
				c.pausing = append(c.pausing, c.now.Add(c.pause))
			}
		}
		c.start(slots)
	}
}

// Clients that begin together and always wait for an answer have the same number in flight from the first
// answer on. The queue is found nevertheless, in their first requests.
func TestClientsThatWaitForAnswers(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		for _, slots := range []int{2, 8, 32} {
			for _, times := range []int{10, 50} { // more clients than slots
				for seed := range uint64(2) {
					c := &clients{pool: newPool(t, Config{}), n: times * slots, pause: 10 * time.Millisecond}
					c.fixed, c.rng = fixed, rand.New(rand.NewPCG(seed, 7))
					c.loop(time.Second+time.Duration(times+1)*c.service, slots)
					c.served = 0
					c.loop(4*time.Second, slots)
					k := c.state()
					most := 4 * float64(max(6, slots)) // two slots show few answers
					if capacity := 4 * 50 * slots; k.State == Open || k.Limit > most || c.served < capacity*9/10 {
						t.Errorf("fixed %v, %d slots, %d clients, seed %d: %v, limit %.1f of at most %v, %d served of %d",
							fixed, slots, c.n, seed, k.State, k.Limit, most, c.served, capacity)
					}
				}
			}
		}
	}
}

// As many clients of a backend without a queue are not limited.
func TestClientsWithoutAQueue(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		c := &clients{pool: newPool(t, Config{}), n: 400, pause: 10 * time.Millisecond}
		c.fixed = fixed
		c.loop(20*time.Second, 1000)
		if k := c.state(); k.State != Open || c.rejected > c.served/100 {
			t.Errorf("fixed %v: %v, %d rejected, %d served", fixed, k.State, c.rejected, c.served)
		}
	}
}
