package spillxds_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillxds"
)

func TestCloseInEveryState(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		c.Close()
		c.Close()
		if err := users.Ready(t.Context()); err == nil {
			t.Error("ready after Close")
		}
		users.Close()
		if _, err := c.Cluster(key("cart")); err == nil {
			t.Error("a cluster of a closed Client")
		}
	})
	played(t, spillxds.Config{Wildcard: true}, func(t *testing.T, s *script, c *spillxds.Client) {
		st := <-s.streams
		is(t, <-st.requests, "//@n1")
	})
}

// TestNothingIsSharedInTheEnd shares a Registry with a Client that ends, and whose
// clusters end before and after it.
func TestNothingIsSharedInTheEnd(t *testing.T) {
	for _, reports := range []spillxds.Reports{spillxds.Always, spillxds.Never} {
		limits := new(inflight.Registry)
		played(t, spillxds.Config{Reports: reports, Registry: limits}, func(t *testing.T, s *script, c *spillxds.Client) {
			before, after := must(c.Cluster(key("before"))), must(c.Cluster(key("after")))
			before.Limiter().TryAcquire() // and it never ends
			before.Close()
			c.Close()
			if n := len(limits.Stats(time.Now())); n != 1 {
				t.Errorf("%d limits are held, one by the program", n)
			}
			after.Close()
			if n := len(limits.Stats(time.Now())); n != 0 {
				t.Errorf("%d limits are still held", n)
			}
		})
	}
}
