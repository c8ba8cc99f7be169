package awstest

import (
	"testing"

	"github.com/seed90641741/spillway/spilltest"
)

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Tests: []func(*testing.T){TestInstallLeavesCopiesAlone}},
		Interfaces: spilltest.Promise{Not: "the compiler checks that a retryer is an aws.RetryerV2, which has no optional methods"},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestContractOfRetries}},
		Churn:      spilltest.Promise{Not: "the SDK owns the connections"},
		Idle:       spilltest.Promise{Not: "a client that retries has no gate for calls in flight"},
	})
}
