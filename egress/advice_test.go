package egress_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/throttle"
)

// A client that has made two calls is throttled by the advice in the answers to
// them said of other clients' calls, and by nothing if they said nothing.
func TestAdviceOfAnswers(t *testing.T) {
	for _, row := range []struct {
		name      string
		ratios    []float64
		err       error
		throttled bool
	}{
		{"served without a ratio", []float64{1, 1, 1}, nil, false},
		{"served with a low ratio", []float64{0.1, 0.1, 0.1}, nil, true},
		{"rejected with a low ratio", []float64{0.1, 0.1, 0.1}, &answer{fault.Failure{Overload: true, DontRetry: true}}, true},
		{"rejected without a ratio", []float64{1, 1, 1}, &answer{fault.Failure{Overload: true, DontRetry: true}}, false},
		{"the last one without a ratio", []float64{0.1, 0.1, 1}, nil, false},
		{"failed", []float64{0.1, 0.1, 0.1}, errors.New("a bug"), true},
		{"abandoned", []float64{0.1, 0.1, 0.1}, &answer{fault.Failure{Canceled: true}}, false},
	} {
		c, err := egress.New(egress.Config{Throttle: throttle.Config{Rand: func() float64 { return 0.999 }}})
		if err != nil {
			t.Fatal(err)
		}
		for _, ratio := range row.ratios {
			_ = c.Do(t.Context(), spillway.Call{}, func(_ context.Context, a *egress.Attempt) error {
				a.Advise(ratio)
				return row.err
			})
		}
		p := c.Stats(time.Now()).Throttle[spillway.Critical.Index()].Probability
		if (p > 0) != row.throttled {
			t.Errorf("%s: probability %v", row.name, p)
		}
	}
}

type answer struct{ failure fault.Failure }

func (a *answer) Error() string { return "answered" }

func (a *answer) Failure() fault.Failure { return a.failure }
