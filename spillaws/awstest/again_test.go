package awstest

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed90641741/spillway/spillaws"
)

// around returns an option that puts f around the operations of a client.
func around(f func(next func() error) error) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("around", func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
				err = f(func() (err error) {
					out, md, err = next.HandleInitialize(ctx, in)
					return err
				})
				return out, md, err
			}), middleware.Before)
		})
	}
}

// TestOperationIsRunAgain by a middleware of the user, such as one that renews credentials: that is another call,
// with retries of its own.
func TestOperationIsRunAgain(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		s := spying(nil)
		client := database(must(spillaws.New(spillaws.Config{Strategy: s})), play(busy, denied, busy, ok))
		_, err := client.GetItem(t.Context(), item, around(func(next func() error) error {
			if err := next(); err == nil {
				t.Error("no error")
			}
			return next()
		}))
		if err != nil {
			t.Error(err)
		}
		s.check(t, "begin", "refresh", "release", "begin", "refresh", "succeed")
	})
}

func denied(req *http.Request) (*http.Response, error) {
	return reply(req, http.StatusBadRequest, `{"__type":"ExpiredTokenException"}`), nil
}
