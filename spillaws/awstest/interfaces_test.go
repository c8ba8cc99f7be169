package awstest

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/seed90641741/spillway/spillaws"
	"github.com/seed90641741/spillway/spilltest"
)

// A Retryer has all methods of the retryers of the SDK.
func TestRetryerHasAllMethods(t *testing.T) {
	for _, bare := range []reflect.Type{
		reflect.TypeFor[*sdkretry.Standard](), reflect.TypeFor[*sdkretry.AdaptiveMode](), reflect.TypeFor[aws.NopRetryer](),
	} {
		for _, method := range spilltest.MissingMethods(bare, reflect.TypeFor[*spillaws.Retryer]()) {
			t.Errorf("no %s, which %v has", method, bare)
		}
	}
}
