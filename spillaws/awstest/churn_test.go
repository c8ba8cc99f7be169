package awstest

import (
	"context"
	"net"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed90641741/spillway/retry"
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

// With calls that are repeated, or whose callers leave, as many connections are opened as with the retryer of the SDK.
func TestConnectionsAreThoseOfTheSDK(t *testing.T) {
	inBothBehaviours(t, func(t *testing.T) {
		own := dials(t, func(o *dynamodb.Options) { o.Retryer = sdkretry.NewStandard() })
		r := must(spillaws.New(spillaws.Config{Budget: retry.Unlimited{}}))
		ours := dials(t, func(o *dynamodb.Options) {
			o.Retryer = r
			o.APIOptions = append(o.APIOptions, r.Wrap)
		})
		if ours > own || own < 2 {
			t.Errorf("%d connections opened, by the SDK %d", ours, own)
		}
	})
}

// dials returns how many connections 30 calls take, most of which are repeated, and some left.
func dials(t *testing.T, option func(*dynamodb.Options)) (n int32) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var requests, opened atomic.Int32
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			switch requests.Add(1) % 5 {
			case 0:
				time.Sleep(20 * time.Second) // the caller leaves
			case 1, 3:
				answer(w, http.StatusInternalServerError, "")
			default:
				answer(w, http.StatusOK, "")
			}
		})
		transport := c.Transport.(*http.Transport)
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			opened.Add(1)
			return dial(ctx, network, address)
		}
		client := dynamodb.New(databaseOptions(c), option)
		for range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_ = get(ctx, client)
			cancel()
		}
		time.Sleep(time.Minute) // handlers end
		n = opened.Load()
	})
	return n
}
