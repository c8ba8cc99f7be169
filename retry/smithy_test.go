package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// smithy is the strategy of the guide's example with its constants, and its
// bucket.
func smithy(tokens float64) (*retry.AWSStandard, *budget.Bucket) {
	b := bucket(500, tokens)
	return must(retry.NewAWSStandard(retry.AWSStandardConfig{Revision: "2.0", MaxAttempts: 5, Budget: b, Rand: noJitter})), b
}

// sound is what the file says that a sound implementation does.
type sound struct {
	Sends  int
	Delays []float64 `json:"delays_s"`
	Bucket float64
	Result string
	Delay  string
}

// script answers each attempt with the next of errs, then with nil.
func script(errs ...error) func(context.Context, *retry.Attempt) error {
	return func(_ context.Context, a *retry.Attempt) error {
		if a.Number < len(errs) {
			return errs[a.Number]
		}
		return nil
	}
}

// smithyCases hold the implementation to the sound column, by name of the case.
var smithyCases = map[string]func(*testing.T, sound){
	"attempt count": func(t *testing.T, want sound) {
		s, _ := smithy(500)
		var sent []time.Time
		retry.Do(t.Context(), s, spillway.Call{}, func(context.Context, *retry.Attempt) error {
			sent = append(sent, time.Now())
			return errTransient
		})
		var delays []float64
		for i := range sent[1:] {
			delays = append(delays, sent[i+1].Sub(sent[i]).Seconds())
		}
		if len(sent) != want.Sends || !slices.Equal(delays, want.Delays) {
			t.Errorf("%d sends with delays %v", len(sent), delays)
		}
	},
	"no Retry-After hint": func(t *testing.T, _ sound) {
		s, b := smithy(100)
		token := s.Begin(spillway.Call{})
		if reason, delay := refresh(s, &token, fault.Failure{Safety: fault.RetrySafe}); reason != retry.ReasonOther || delay != time.Second {
			t.Errorf("%v, delay %v", reason, delay)
		}
		wantTokens(t, b, 95)
	},
	"explicit NO with server fault": func(t *testing.T, _ sound) {
		s, b := smithy(100)
		token := s.Begin(spillway.Call{Idempotent: true})
		if reason, _ := refresh(s, &token, fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server}); reason != retry.ReasonNotRetryable {
			t.Error(reason)
		}
		wantTokens(t, b, 100)
	},
	"MAYBE with client fault": func(t *testing.T, _ sound) {
		for _, c := range []struct {
			call  spillway.Call
			party fault.Party
			want  retry.Reason
		}{
			{spillway.Call{}, fault.Client, retry.ReasonNotRetryable},
			{spillway.Call{Idempotent: true}, fault.Client, retry.ReasonNotRetryable},
			{spillway.Call{}, fault.Server, retry.ReasonNotRetryable},
			{spillway.Call{Idempotent: true}, fault.Server, retry.ReasonOther},
			{spillway.Call{Kind: spillway.KindRead}, fault.Other, retry.ReasonOther},
			{spillway.Call{Kind: spillway.KindWrite}, fault.Other, retry.ReasonNotRetryable},
		} {
			s, _ := smithy(100)
			token := s.Begin(c.call)
			if got, _ := refresh(s, &token, fault.Failure{Party: c.party}); got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
		}
	},
	"tokens after a successful retry": func(t *testing.T, want sound) {
		s, b := smithy(100)
		for range 10 {
			if err := retry.Do(t.Context(), s, spillway.Call{}, script(errTransient)); err != nil {
				t.Error(err)
			}
		}
		wantTokens(t, b, want.Bucket)
	},
	"two retries then success": func(t *testing.T, want sound) {
		s, b := smithy(100)
		if err := retry.Do(t.Context(), s, spillway.Call{}, script(errTransient, errTransient)); err != nil {
			t.Error(err)
		}
		wantTokens(t, b, want.Bucket)
	},
	"huge Retry-After": func(t *testing.T, _ sound) {
		day := fault.Failure{Safety: fault.RetrySafe, RetryAfter: 24 * time.Hour, HasRetryAfter: true}
		aws := must(retry.NewAWSStandard(retry.AWSStandardConfig{Rand: noJitter}))
		token := aws.Begin(spillway.Call{})
		if _, delay := refresh(aws, &token, day); delay != 50*time.Millisecond+5*time.Second {
			t.Errorf("revision 2.1 waits %v", delay)
		}
		s, b := smithy(100)
		start := time.Now()
		err := retry.Do(t.Context(), s, spillway.Call{}, script(faultError(day)))
		if rejected, ok := errors.AsType[*retry.NotRetriedError](err); !ok || rejected.Reason != retry.ReasonRetryAfter || rejected.RetryAfter != 24*time.Hour {
			t.Errorf("revision 2.0: %v", err)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("waited %v", waited)
		}
		wantTokens(t, b, 100)
	},
	"successful call without a body": func(t *testing.T, want sound) {
		s, _ := smithy(500)
		sends := 0
		if err := retry.Do(t.Context(), s, spillway.Call{}, func(context.Context, *retry.Attempt) error { sends++; return nil }); err != nil || sends != want.Sends {
			t.Errorf("%d sends, %v", sends, err)
		}
	},
	"cancellation during the wait": func(t *testing.T, _ sound) {
		s, b := smithy(100)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(500*time.Millisecond, cancel)
		err := retry.Do(ctx, s, spillway.Call{}, script(errTransient))
		if !errors.Is(err, errTransient) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v is not both the last real error and the cancellation", err)
		}
		wantTokens(t, b, 100)
	},
	"delay longer than the deadline": func(t *testing.T, _ sound) {
		s, b := smithy(100)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := retry.Do(ctx, s, spillway.Call{}, script(errTransient))
		if stopped, ok := errors.AsType[*retry.Error](err); !ok || stopped.Reason != retry.ReasonDeadline || !errors.Is(err, errTransient) {
			t.Errorf("%v is not the last error", err)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("waited %v", waited)
		}
		wantTokens(t, b, 100)
	},
	"token used twice": func(t *testing.T, _ sound) {
		s, b := smithy(100)
		token := s.Begin(spillway.Call{})
		s.Refresh(t0, token, fault.Failure{Safety: fault.RetrySafe})
		if _, err := s.Refresh(t0, token, fault.Failure{Safety: fault.RetrySafe}); !errors.Is(err, retry.ErrTokenUsed) {
			t.Errorf("the second refresh: %v", err)
		}
		wantTokens(t, b, 95)
	},
	"initial token rejected": func(t *testing.T, _ sound) {
		s, b := smithy(0)
		if err := s.Succeed(s.Begin(spillway.Call{})); err != nil {
			t.Error(err)
		}
		wantTokens(t, b, 1)
	},
}

func wantTokens(t *testing.T, b *budget.Bucket, want float64) {
	t.Helper()
	if got := b.Stats(time.Time{}).Tokens; got != want {
		t.Errorf("%v tokens left, want %v", got, want)
	}
}

func TestSmithyGuide(t *testing.T) {
	var facts struct {
		Cases []struct {
			Name  string
			Sound json.RawMessage
		}
	}
	vectors(t, "smithy_guide_example.json", &facts)
	if len(facts.Cases) != len(smithyCases) {
		t.Errorf("%d cases in the file, %d known here", len(facts.Cases), len(smithyCases))
	}
	for _, c := range facts.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var want sound
			if err := json.Unmarshal(c.Sound, &want); err != nil {
				t.Fatal(err)
			}
			run := smithyCases[c.Name]
			if run == nil {
				t.Fatal("not replayed")
			}
			synctest.Test(t, func(t *testing.T) { run(t, want) })
		})
	}
}
