package spillaws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// The mode of the code counts before that of the configuration.
func TestInstallMode(t *testing.T) {
	for _, row := range []struct {
		configured, code aws.RetryMode
		adaptive         bool
	}{
		{"", "", false},
		{aws.RetryModeStandard, "", false},
		{aws.RetryModeAdaptive, "", true},
		{aws.RetryModeAdaptive, aws.RetryModeStandard, false},
		{aws.RetryModeStandard, aws.RetryModeAdaptive, true},
	} {
		cfg := aws.Config{RetryMode: row.configured}
		r, err := Install(&cfg, Config{Mode: row.code})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.sender != nil; got != row.adaptive {
			t.Errorf("%q, and %q in the code: adaptive: %v", row.configured, row.code, got)
		}
		if len(cfg.APIOptions) == 0 || cfg.Retryer == nil {
			t.Errorf("%q: nothing is installed", row.configured)
		}
	}
}
