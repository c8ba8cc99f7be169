package spillrueidis

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "rueidis takes commands over with the call: callers must not use them again"},
		Interfaces: spilltest.Promise{Not: "the compiler checks that a client has all methods of rueidis.Client, which has no optional ones"},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestPanicOfTheObserver}},
		Churn:      spilltest.Promise{Not: "rueidis owns the connections, a few for each server, whatever the load"},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestBlocking, TestSubscriptionsLast}},
	})
}
