package spillaws

import (
	"context"
	"testing"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/seed90641741/spillway"
)

func TestWhatTheStrategyIsTold(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
	for _, test := range []struct {
		service, operation string
		poll               bool
	}{
		{"DynamoDB", "GetItem", false},
		{"SQS", "ReceiveMessage", true},
		{"SQS", "SendMessage", false},
		{"SFN", "GetActivityTask", true},
		{"SWF", "PollForActivityTask", true},
		{"SWF", "PollForDecisionTask", true},
		{"SWF", "CountPendingActivityTasks", false},
		{"", "", false},
	} {
		ctx := awsmiddleware.SetOperationName(awsmiddleware.SetServiceID(ctx, test.service), test.operation)
		want := spillway.Call{Key: test.service, Deadline: deadline, Criticality: spillway.Sheddable, LongPoll: test.poll}
		if got := describe(ctx); got != want {
			t.Errorf("%s: %+v, want %+v", test.operation, got, want)
		}
	}
}
