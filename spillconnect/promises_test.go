package spillconnect

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestMessagesAreTheCallersAgain}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestConnectionsHaveAllMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){panicsOfClient, panicsOfServer, TestStreamPanics}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestRejectionsCloseNoConnection}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestIdleStream}},
	})
}
