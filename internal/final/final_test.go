package final_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/final"
)

type failure fault.Failure

func (failure) Error() string            { return "failed" }
func (f failure) Failure() fault.Failure { return fault.Failure(f) }

func TestError(t *testing.T) {
	for _, row := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("unknown"), false},
		{failure{Overload: true}, false},
		{failure{DontRetry: true}, true},
		{fmt.Errorf("wrapped: %w", failure{DontRetry: true}), true},
		{&spillway.RejectedError{}, true},
		{failure{Unsent: true, Canceled: true}, false},
		{context.Canceled, false},
		{errors.Join(failure{DontRetry: true}, context.Canceled), false}, // a hedge that has lost
		{context.DeadlineExceeded, false},
	} {
		if got := final.Error(row.err); got != row.want {
			t.Errorf("%v: %v", row.err, got)
		}
	}
}

// TestMark: the mark of a request is found by its context; Of returns nil for a context without a mark.
func TestMark(t *testing.T) {
	m := new(final.Mark)
	of := final.Of(context.WithValue(t.Context(), final.Key{}, m))
	if of != m || m.IsSet() {
		t.Errorf("%p is set (%v), want %p", of, m.IsSet(), m)
	}
	of.Set()
	if !m.IsSet() {
		t.Error("the mark is not set")
	}
	final.Of(t.Context()).Set() // of no request
}
