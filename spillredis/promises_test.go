package spillredis

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestArgumentsAreTheCallersAgain}},
		Interfaces: spilltest.Promise{Not: "a hook wraps functions, which have no methods"},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestContract}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestConnectionsAreThoseOfGoRedis}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestBlocking}},
	})
}
