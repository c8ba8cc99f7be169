package hostile

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestMix has all attacks that need no configuration of their own come and go at once, in
// an order that the seed says. In the end nothing must be lost, answered twice or left.
func TestMix(t *testing.T) {
	if *mixing == 0 {
		t.Skip("it lasts for minutes, and needs an idle machine: run make hostile")
	}
	mix := attack{name: "everything", upstreams: []string{"plain", "plain"}}
	s := mix.setUp(t)
	warm, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	newHonest(s.address, false).run(warm, "warm")
	cancel()
	before := s.proxy.measure()
	ctx, cancel := context.WithTimeout(t.Context(), *mixing)
	defer cancel()
	var all sync.WaitGroup
	for i := range 3 {
		random := rand.New(rand.NewPCG(*seed, uint64(i)))
		all.Go(func() { s.attackAtRandom(ctx, random) })
	}
	h := newHonest(s.address, false)
	h.run(ctx, "mix")
	all.Wait()
	got := h.result()
	after := s.settle(before)
	t.Logf("%v\nbefore %+v\nafter  %+v\nproblems %v", got, before, after, got.failed)
	if got.share() < leastMixShare {
		t.Errorf("the honest client is not served: %v", got)
	}
	if err := left(before, after); err != nil {
		t.Error(err)
	}
	var seen, twice int64
	for _, u := range s.upstreams {
		f := u.measure()
		seen, twice = seen+f.Seen, twice+f.Twice
	}
	if seen < int64(got.served) {
		t.Errorf("%d requests were answered, and %d came to an upstream", got.served, seen)
	}
	if twice > 0 {
		t.Errorf("%d requests came to an upstream twice", twice)
	}
}

// leastMixShare is of a hundred. Three attacks at once may take more processor time than
// the machine has.
const leastMixShare = 95.0

// attackAtRandom runs one attack after the other until ctx ends.
func (s *stage) attackAtRandom(ctx context.Context, random *rand.Rand) {
	var plain []attack
	for _, a := range attacks {
		if a.config == "" && a.library == "" && a.upstreams == nil && a.files == 0 {
			plain = append(plain, a)
		}
	}
	for ctx.Err() == nil {
		a := plain[random.IntN(len(plain))]
		during, cancel := context.WithTimeout(ctx, time.Duration(1+random.IntN(10))*time.Second)
		if err := a.run(during, s); err != nil && ctx.Err() == nil {
			s.t.Errorf("%s: %v", a.name, err)
		}
		cancel()
	}
}
