package spillgrpc

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromisesOfServer(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "the server keeps no message: it passes them on"},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestServerStreamHasAllMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){panicsOfServer, TestPanicOfAStream, TestServerContract}},
		Churn:      spilltest.Promise{Not: "grpc owns the connections of a server"},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestIdleStreams, TestWatchIsHealthToo}},
	})
}

func TestPromisesOfClient(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestMessagesOfTheCaller}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestStreamMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){panicsOfClient, TestStreamPanics}},
		Churn:      spilltest.Promise{Not: "grpc owns the connections, one for each endpoint, whatever the load"},
		Idle:       spilltest.Promise{Not: "an open stream is in flight: max_requests counts it, as in Envoy"},
	})
}
