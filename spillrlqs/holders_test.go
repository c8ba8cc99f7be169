package spillrlqs

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
)

// An id without a place holds its part until its assignment expires. Ids that are used for one round only
// have one share together, and not one share each.
func TestRotatedIDsDivideOneShare(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := unlisted()
		c.MaxStreamBuckets = 1
		_, cc := start(t, c)
		conn := connect(t, t.Context(), cc)
		type part struct {
			rate  float64
			until time.Time
		}
		parts, most := map[string]part{}, 0.
		go func() {
			for {
				m, err := conn.Recv()
				if err != nil {
					return
				}
				for _, a := range m.GetBucketAction() {
					q := a.GetQuotaAssignmentAction()
					parts[a.GetBucketId().GetBucket()["customer"]] = part{
						rateOf(q.GetRateLimitStrategy().GetTokenBucket()), time.Now().Add(q.GetAssignmentTimeToLive().AsDuration()),
					}
				}
			}
		}()
		for round := range 60 {
			if err := conn.Send(reports(usage(5, "customer", "kept"), usage(5, "customer", fmt.Sprint(round)))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			sum := 0.
			for name, p := range parts {
				if name != "kept" && time.Now().Before(p.until) {
					sum += p.rate
				}
			}
			most = max(most, sum)
		}
		if most < 1 || most > 10*1.02 {
			t.Errorf("ids of one round each have up to %.1f/s, want at most 10/s", most)
		}
	})
}

// An assignment may outlast the time for which a bucket without demand is kept: what it gives is not given again.
func TestHoldersOutlastABucketWithoutDemand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := unlisted()
		c.MaxStreamBuckets, c.TTL, c.Idle = 1, 10*time.Minute, 10*time.Second
		s, cc := start(t, c)
		conn := connect(t, t.Context(), cc)
		assigned := func(name string) float64 {
			if err := conn.Send(reports(usage(5, "customer", "kept"), usage(5, "customer", name))); err != nil {
				t.Fatal(err)
			}
			for {
				m, err := conn.Recv()
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range m.GetBucketAction() {
					if a.GetBucketId().GetBucket()["customer"] == name {
						return rateOf(a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket())
					}
				}
			}
		}
		first := assigned("first")
		time.Sleep(time.Minute)
		if second := assigned("second"); first < 1 || first+second > 10*1.02 {
			t.Errorf("two ids have %v/s and %v/s, want 10/s together; %+v", first, second, s.Stats(time.Now()))
		}
	})
}

func ids(names ...string) (all []*rlqs.BucketId) {
	for _, name := range names {
		all = append(all, &rlqs.BucketId{Bucket: map[string]string{"customer": name, "path": "/"}})
	}
	return all
}

func TestHoldersDivide(t *testing.T) {
	h := make(holders)
	rate := func(name string) float64 { return h[hashOf(ids(name)[0])].rate }
	for i, row := range []struct {
		at    int // seconds
		share float64
		asks  []string
		a, b  float64
	}{
		{0, 12, []string{"a"}, 12, 0},
		{1, 12, []string{"b"}, 12, 0}, // a holds all of it
		{2, 12, []string{"a", "b", "a"}, 6, 6},
		{3, 6, []string{"a"}, 0, 6},
		{4, 6, []string{"c", "b"}, 0, 2}, // of three
		{5, 6, []string{"a"}, 2, 2},
		{13, 6, []string{"b"}, 2, 2},
		{14, 6, []string{"b"}, 2, 3}, // c has expired
		{15, 6, []string{"b"}, 0, 6},
		{16, math.Inf(1), []string{"a", "b"}, math.Inf(1), math.Inf(1)},
		{17, math.Inf(1), []string{"b"}, math.Inf(1), math.Inf(1)},
	} {
		now := t0.Add(time.Duration(row.at) * time.Second)
		h.divide(now, now.Add(10*time.Second), row.share, ids(row.asks...))
		if a, b := rate("a"), rate("b"); a != row.a || b != row.b {
			t.Errorf("step %d: a has %v and b %v, want %v and %v", i, a, b, row.a, row.b)
		}
	}
}

// What an Envoy names takes a bounded space, and names beyond it do not take from those that hold a part.
func TestHoldersAreBounded(t *testing.T) {
	h := make(holders)
	h.divide(t0, t0.Add(time.Minute), 1000, ids("first"))
	for i := range 3 * maxHolders {
		now := t0.Add(time.Duration(i) * time.Millisecond)
		h.divide(now, now.Add(time.Minute), 1000, ids("first", fmt.Sprint(i)))
	}
	sum := 0.
	for _, holder := range h {
		sum += holder.rate
	}
	if rate := h[hashOf(ids("first")[0])].rate; len(h) != maxHolders || rate < 0.999 || sum > 1000.01 {
		t.Errorf("%d ids have %v, the first one %v", len(h), sum, rate)
	}
}
