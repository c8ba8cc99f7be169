package spillredis

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "a hook returns when its command has ended, and keeps no command"},
		Interfaces: spilltest.Promise{Not: "a hook wraps functions, which have no methods"},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestContract}},
		Churn:      spilltest.Promise{Not: "go-redis owns the pool; a rejected command takes no connection of it"},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestBlocking}},
	})
}
