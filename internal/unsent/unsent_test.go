package unsent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/unsent"
)

func TestError(t *testing.T) {
	if err := unsent.Error("ratelimit", "a token", nil); err != nil {
		t.Errorf("of no error: %v", err)
	}
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		err := unsent.Error("ratelimit", "a token", cause)
		if !errors.Is(err, cause) {
			t.Errorf("%v does not wrap %v", err, cause)
		}
		if f := fault.Of(err); !f.Unsent || f.Retryable(true) {
			t.Errorf("%v is %+v, want Unsent and not retryable", err, f)
		}
		if want := "ratelimit: not sent: waited for a token: " + cause.Error(); err.Error() != want {
			t.Errorf("text %q, want %q", err, want)
		}
	}
}
