package spillgrpc

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromisesOfServer(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "an interceptor passes messages on to the handler and to grpc, and returns when the handler has"},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestServerStreamHasAllMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){panicsOfServer, TestPanicOfAStream, TestServerContract}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestRejectionsCloseNoConnection}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestIdleStreams, TestWatchIsHealthToo}},
	})
}

func TestPromisesOfClient(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestMessagesOfTheCaller}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestStreamMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){panicsOfClient, TestStreamPanics}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestCallsShareAConnection}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestIdleStreamsOfAClient}},
	})
}
