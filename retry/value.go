package retry

import (
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
)

// DoValue is [Do] for a func with a result. It returns the result of the attempt that succeeded, or
// the zero value and the error of Do.
//
// Whether a call is retried depends on the error and on the call. After an error that proves that
// nothing was sent, such as ECONNREFUSED, it is always retried. After any other error, such as a
// connection that was cut, it is retried only if call is Idempotent or a Read. [fault.Of]
// recognizes the errors of packages context, net, net/url and syscall. For HTTP answers use
// CheckResponse of package spillhttp.
func DoValue[T any](ctx context.Context, s Strategy, call spillway.Call, f func(ctx context.Context, a *Attempt) (T, error)) (T, error) {
	var value T
	err := Do(ctx, s, call, func(ctx context.Context, a *Attempt) (err error) {
		value, err = f(ctx, a)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// standard returns the strategy of Do if none is given. It waits as MongoDB's retry policy does
// after an overload, because there may be no other task.
var standard = sync.OnceValue(func() *Budgeted {
	s, _ := NewBudgeted(BudgetedConfig{Backoff: Backoff{Base: 100 * time.Millisecond}})
	return s // the config is valid
})
