package spillaws

import (
	"context"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/seed90641741/spillway"
)

// describe returns what the strategy may know of the call of ctx.
func describe(ctx context.Context) spillway.Call {
	service := awsmiddleware.GetServiceID(ctx)
	deadline, _ := ctx.Deadline()
	return spillway.Call{
		Key:         service,
		Deadline:    deadline,
		Criticality: spillway.CriticalityFrom(ctx),
		LongPoll:    longPolls(ctx, service),
	}
}

// longPolls reports whether the operation of ctx has the trait longPoll in the
// model of its service. The SDK keeps that to itself.
func longPolls(ctx context.Context, service string) bool {
	switch service {
	case "SQS":
		return awsmiddleware.GetOperationName(ctx) == "ReceiveMessage"
	case "SFN":
		return awsmiddleware.GetOperationName(ctx) == "GetActivityTask"
	case "SWF":
		op := awsmiddleware.GetOperationName(ctx)
		return op == "PollForActivityTask" || op == "PollForDecisionTask"
	default:
		return false
	}
}
