package spillsql

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestArgumentsAreTheCallersAgain}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestInterfacesOfThisVersionOfGo}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestPanicsAreThoseOfDatabaseSQL, TestPanicsOfTheUser, TestPanicOfReset, TestPanicOfConnect}},
		Churn:      spilltest.Promise{Tests: []func(*testing.T){TestConnectionsAreKept, TestIdleTimeAfterAQueue}},
		Idle:       spilltest.Promise{Not: "open rows and transactions hold a connection, which nobody else can use"},
	})
}
