package spillrueidis

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "rueidis takes commands over with the call: callers must not use them again"},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestClientHasAllMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestPanicOfTheObserver, TestPanicsAreThoseOfRueidis}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestConnectionsAreThoseOfRueidis}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestBlocking, TestSubscriptionsLast}},
	})
}
