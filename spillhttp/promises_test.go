package spillhttp

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

// For the promises of the Transport, which are tested from outside.
var (
	UpgradeTest             = TestUpgrade
	ConnectionsReusedTest   = TestConnectionsReused
	RequestIsTheCallersTest = TestHedgeOutlivesTheCall
	PanicsTest              = panicsOfTransport
	IdleAnswersTest         = TestIdleAnswersOfAClient
)

func TestPromisesOfHandler(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestRequestIsGivenBack, TestLateReadersDoNothing}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestWriterHasAllMethods, TestWriterKeepsItsAbilities}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){panicsOfHandler, TestPanicsWhileSuspendedLeaveNothing}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestClosedConnections}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestIdleStreams}},
	})
}
