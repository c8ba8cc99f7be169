package sim

import (
	"cmp"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/tokens"
	"github.com/seed90641741/spillway/retry"
)

// strategy returns the strategy of an edge, which all its callers share: it knows
// nothing of them but the budget that it is given.
func (r Retry) strategy(b retry.Budget, random func() float64) (retry.Strategy, error) {
	if r.NoJitter {
		random = func() float64 { return longestWait }
	}
	if r.Unlimited || r.Budget == nil && r.Strategy == MongoDB {
		b = retry.Unlimited{}
	}
	switch r.Strategy {
	case AWSStandard:
		r.AWSStandard.Budget, r.AWSStandard.Rand = b, random
		s, err := retry.NewAWSStandard(r.AWSStandard)
		return s, invalid.In("sim", "AWSStandard", err)
	case MongoDB:
		r.MongoDB.Budget, r.MongoDB.Rand = b, random
		s, err := retry.NewMongoDB(r.MongoDB)
		return s, invalid.In("sim", "MongoDB", err)
	case Budgeted:
		r.Budgeted.Budget, r.Budgeted.Rand = b, random
		s, err := retry.NewBudgeted(r.Budgeted)
		return s, invalid.In("sim", "Budgeted", err)
	}
	return nil, invalid.Field("sim", "Strategy", string(r.Strategy), "budgeted, aws_standard or mongodb")
}

// longestWait is the greatest number below 1.
const longestWait = 1 - 0x1p-53

// bucket returns the configuration of the budget of each caller.
func (r *Retry) bucket() budget.Config {
	switch {
	case r.Budget != nil:
		return *r.Budget
	case r.Strategy == AWSStandard:
		return budget.Config{Capacity: tokens.StandardCapacity}
	}
	ratio := max(cmp.Or(r.Budgeted.Ratio, tokens.DefaultRatio), 1e-3) // without any, a bucket that stays empty
	return budget.Config{Capacity: tokens.EarningCalls * ratio, Empty: true, Credit: tokens.CreditCalls * ratio}
}
