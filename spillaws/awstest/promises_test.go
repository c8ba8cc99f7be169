package awstest

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestInstallLeavesCopiesAlone}},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestRetryerHasAllMethods}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestContractOfRetries}},
		Churn:      spilltest.Promise{Not: "the SDK sends requests and closes answers; a Retryer only says whether there is another attempt"},
		Idle:       spilltest.Promise{Not: "there is no gate: a Retryer decides on retries, and the SDK has no streams that wait for events between attempts"},
	})
}
