package awstest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

// load loads the configuration as the SDK does, with the settings of env and of
// the profile.
func load(t *testing.T, env map[string]string, profile string) (aws.Config, error) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("[default]\nregion = eu-west-1\n"+profile), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_RETRY_MODE", env["AWS_RETRY_MODE"])
	t.Setenv("AWS_MAX_ATTEMPTS", env["AWS_MAX_ATTEMPTS"])
	return config.LoadDefaultConfig(t.Context(), config.WithCredentialsProvider(secret), config.WithBaseEndpoint("http://aws.example"))
}

// TestSettings counts the attempts of a client whose configuration has settings
// of retries from all sources.
func TestSettings(t *testing.T) {
	for _, test := range []struct {
		name     string
		env      map[string]string
		profile  string
		code     spillaws.Config
		attempts int
		adaptive bool
	}{
		{name: "none", attempts: 3},
		{name: "environment", env: map[string]string{"AWS_MAX_ATTEMPTS": "5", "AWS_RETRY_MODE": "adaptive"}, attempts: 5, adaptive: true},
		{name: "profile", profile: "max_attempts = 4\nretry_mode = adaptive\n", attempts: 4, adaptive: true},
		{name: "environment before profile", env: map[string]string{"AWS_MAX_ATTEMPTS": "2", "AWS_RETRY_MODE": "standard"}, profile: "max_attempts = 4\nretry_mode = adaptive\n", attempts: 2},
		{name: "code before environment", env: map[string]string{"AWS_MAX_ATTEMPTS": "2", "AWS_RETRY_MODE": "adaptive"}, code: spillaws.Config{MaxAttempts: 6, Mode: aws.RetryModeStandard}, attempts: 6},
		{name: "strategy", code: spillaws.Config{Strategy: spying(nil)}, attempts: 3},
		{name: "strategy, and fewer", env: map[string]string{"AWS_MAX_ATTEMPTS": "2"}, code: spillaws.Config{Strategy: spying(nil)}, attempts: 2},
		{name: "strategy, and more", env: map[string]string{"AWS_MAX_ATTEMPTS": "9"}, code: spillaws.Config{Strategy: spying(nil)}, attempts: 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg, err := load(t, test.env, test.profile)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				if _, err := spillaws.Install(&cfg, test.code); err != nil {
					t.Fatal(err)
				}
				service := play(busy, busy, busy, busy, busy, busy, busy, busy, busy)
				cfg.HTTPClient = service
				if err := get(t.Context(), dynamodb.NewFromConfig(cfg)); statusOf(err) != 500 || service.n != test.attempts {
					t.Errorf("%d attempts, want %d: %v", service.n, test.attempts, err)
				}
				// What Install makes of both modes, the tests of package spillaws know.
				if got := cmp.Or(test.code.Mode, cfg.RetryMode) == aws.RetryModeAdaptive; got != test.adaptive {
					t.Errorf("adaptive: %v", got)
				}
			})
		})
	}
}

// TestUnknownSettings are reported, by the SDK or by Install.
func TestUnknownSettings(t *testing.T) {
	for name, value := range map[string]string{"AWS_RETRY_MODE": "legacy", "AWS_MAX_ATTEMPTS": "many"} {
		if _, err := load(t, map[string]string{name: value}, ""); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for _, test := range []struct {
		cfg  aws.Config
		want string
	}{
		{aws.Config{RetryMode: "legacy"}, `Mode is "legacy"`},
		{aws.Config{RetryMaxAttempts: -1}, "MaxAttempts is -1"},
		{aws.Config{Retryer: func() aws.Retryer { return aws.NopRetryer{} }}, "Retryer is set"},
	} {
		before := fmt.Sprint(test.cfg.RetryMaxAttempts, len(test.cfg.APIOptions), test.cfg.Retryer == nil)
		if _, err := spillaws.Install(&test.cfg, spillaws.Config{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
		if after := fmt.Sprint(test.cfg.RetryMaxAttempts, len(test.cfg.APIOptions), test.cfg.Retryer == nil); after != before {
			t.Errorf("%s: the configuration was changed to %s", test.want, after)
		}
	}
}

// TestInstallLeavesCopiesAlone guards against APIOptions that share memory.
func TestInstallLeavesCopiesAlone(t *testing.T) {
	cfg := aws.Config{APIOptions: make([]func(*middleware.Stack) error, 0, 4)}
	copied := cfg
	for _, c := range []*aws.Config{&cfg, &copied} {
		if _, err := spillaws.Install(c, spillaws.Config{Budget: retry.Unlimited{}}); err != nil {
			t.Fatal(err)
		}
	}
	if &cfg.APIOptions[0] == &copied.APIOptions[0] {
		t.Error("the copy has the options of the original")
	}
}

// TestClientsShareTheBudget of one Install, whichever service they are for.
func TestClientsShareTheBudget(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		b := bucket(500, 100)
		r := must(spillaws.New(spillaws.Config{Budget: b}))
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error { return get(ctx, database(r, play(busy, busy, busy))) },
			func(ctx context.Context) error { return receive(ctx, queue(r, play(busy, busy, busy))) },
		} {
			if err := call(t.Context()); err == nil {
				t.Error("no error")
			}
		}
		if got := b.Stats(time.Now()).Tokens; got != 100-4*14 {
			t.Errorf("%v tokens are left, want %v", got, 100-4*14)
		}
	})
}
