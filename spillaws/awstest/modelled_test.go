package awstest

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/spillaws"
)

// The errors of a service's model mean the same as the codes that package spillaws is
// tested with.
func TestClassifyModelledErrors(t *testing.T) {
	for _, row := range []struct {
		err  smithy.APIError
		want fault.Failure
	}{
		{&types.ProvisionedThroughputExceededException{}, fault.Failure{Safety: fault.RetrySafe, Party: fault.Client, Overload: true}},
		{&types.InternalServerError{}, fault.Failure{Safety: fault.RetryUnknown, Party: fault.Server}},
	} {
		plain := &smithy.GenericAPIError{Code: row.err.ErrorCode(), Fault: row.err.ErrorFault()}
		if got, same := spillaws.Classify(row.err), spillaws.Classify(plain); got != row.want || same != got {
			t.Errorf("%s: %+v, by code and fault %+v, want %+v", row.err.ErrorCode(), got, same, row.want)
		}
	}
}
