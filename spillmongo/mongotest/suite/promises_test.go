package suite_test

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "a command is encoded again for each attempt, while its operation waits for it"},
		Interfaces: spilltest.Promise{Not: "New rejects a driver whose interfaces it does not know"},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestLogThatPanics}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestConnectionGoesBackBeforeTheWait}},
		Idle:       spilltest.Promise{Not: "a client that retries has no gate for operations in flight"},
	})
}
