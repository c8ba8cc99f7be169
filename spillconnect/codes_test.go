package spillconnect

import (
	"slices"
	"testing"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway/internal/serving"
)

// The codes that package serving knows are those of Connect.
func TestCodes(t *testing.T) {
	repeated := []connect.Code{
		connect.CodeUnknown, connect.CodeDeadlineExceeded, connect.CodeResourceExhausted, connect.CodeAborted, connect.CodeInternal,
		connect.CodeUnavailable, connect.CodeDataLoss,
	}
	for c := connect.CodeCanceled; c <= connect.CodeUnauthenticated; c++ {
		if serving.Repeatable(c) != slices.Contains(repeated, c) {
			t.Errorf("%v is repeatable: %v", c, serving.Repeatable(c))
		}
	}
}
