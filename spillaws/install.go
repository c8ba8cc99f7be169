package spillaws

import (
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/seed90641741/spillway/internal/invalid"
)

// Install makes a Retryer for all clients that are made from cfg from now on: it
// sets Retryer and RetryMaxAttempts of cfg and adds to its APIOptions.
//
// Where Mode and MaxAttempts of c are empty, the fields of cfg count, in which the SDK
// has put AWS_RETRY_MODE and AWS_MAX_ATTEMPTS, or else retry_mode and max_attempts
// of the profile. With a Strategy, MaxAttempts ends calls sooner than the
// Strategy would, and never later.
//
// Install returns an error that names what is wrong in c or cfg. A cfg that has a
// Retryer is one such: the SDK has not read the settings above for it.
func Install(cfg *aws.Config, c Config) (*Retryer, error) {
	if cfg.Retryer != nil {
		return nil, invalid.Field("spillaws", "aws.Config.Retryer", cfg.Retryer, "nil")
	}
	c.Mode = cmp.Or(c.Mode, cfg.RetryMode)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, cfg.RetryMaxAttempts)
	r, err := New(c)
	if err != nil {
		return nil, err
	}
	cfg.Retryer = func() aws.Retryer { return r }
	cfg.RetryMaxAttempts = r.maxAttempts // of which a client makes a wrapper around r
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), r.Wrap)
	return r, nil
}
