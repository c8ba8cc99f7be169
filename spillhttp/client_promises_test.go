package spillhttp_test

import (
	"testing"

	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spilltest"
)

func TestPromisesOfTransport(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){spillhttp.RequestIsTheCallersTest}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){spillhttp.UpgradeTest}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){spillhttp.PanicsTest, TestObserverPanics, TestTransportContract}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){spillhttp.ConnectionsReusedTest}},
		Idle:       spilltest.Promise{Tests: []func(*testing.T){spillhttp.IdleAnswersTest}},
	})
}
