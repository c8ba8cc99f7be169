package suite_test

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestDocumentsAreTheCallersAgain}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestOptionalInterfaces}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestLogThatPanics}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestConnectionGoesBackBeforeTheWait}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestIdleCursors}},
	})
}
