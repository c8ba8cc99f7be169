package spillconnect

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "a call is encoded before Send or the interceptor returns, and no stream is retried"},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestConnectionsHaveAllMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){panicsOfClient, panicsOfServer, TestStreamPanics}},
		Churn:      spilltest.Promise{Not: "net/http owns the connections"},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){TestIdleStream}},
	})
}
