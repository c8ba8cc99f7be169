package awstest

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
	"github.com/seed90641741/spillway/spilltest"
)

// worker is a service that runs the work of a call, which travels in its context.
type worker struct{}

type workKey struct{}

func (worker) Do(req *http.Request) (*http.Response, error) {
	switch err := req.Context().Value(workKey{}).(func(context.Context) error)(req.Context()); {
	case errors.Is(err, spilltest.ErrBusy):
		return busy(req)
	case err != nil:
		return nil, err
	}
	return ok(req)
}

func TestContractOfRetries(t *testing.T) {
	inBothBehaviours(t, func(t *testing.T) {
		spilltest.TestRetries(t, func(_ *testing.T, s retry.Strategy) spilltest.Do {
			client := database(must(spillaws.New(spillaws.Config{Strategy: s})), worker{})
			return func(ctx context.Context, work func(context.Context) error) error {
				return get(context.WithValue(ctx, workKey{}, work), client)
			}
		})
	})
}
