package retry_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

var (
	overload    = fault.Failure{Overload: true, Safety: fault.RetrySafe}
	notOverload = fault.Failure{Safety: fault.RetrySafe}
)

// mongoDB is the file of facts.
type mongoDB struct {
	Revisions []struct {
		Name       string
		MaxRetries int   `json:"max_retries"`
		Delays     []int `json:"delays_ms_jitter1"`
		Base       int   `json:"base_ms"`
		Cap        int   `json:"cap_ms"`
		Bucket     *struct {
			Capacity     float64
			Cost         float64
			First        float64 `json:"deposit_first_success"`
			Retried      float64 `json:"deposit_retry_success"`
			HealthyRetry float64 `json:"deposit_retry_failed_not_overload"`
		} `json:"token_bucket"`
	}
	Buckets []struct {
		Name       string
		Start, End float64
		Events     []string
	} `json:"token_bucket_cases"`
	Prose []struct {
		Name  string
		Error struct {
			Labels []string
		}
		Sum0    *int `json:"sum_ms_jitter0"`
		Sum1    *int `json:"sum_ms_jitter1"`
		Started int  `json:"commands_started"`
	} `json:"prose_tests_2026_07"`
}

// revision is the name by which the configuration knows it.
func revision(name string) string { return name[:len("2026-02")] }

// overloads sends a command that is always rejected, and returns the delays of
// its retries.
func overloads(t *testing.T, c retry.MongoDBConfig, f fault.Failure) (delays []time.Duration) {
	t.Helper()
	s := must(retry.NewMongoDB(c))
	token := s.Begin(spillway.Call{})
	for {
		reason, delay := refresh(s, &token, f)
		if reason != retry.ReasonOther {
			return delays
		}
		delays = append(delays, delay)
	}
}

func TestMongoDBRevisions(t *testing.T) {
	var facts mongoDB
	vectors(t, "mongodb_backpressure.json", &facts)
	if len(facts.Revisions) != 2 {
		t.Fatalf("%d revisions", len(facts.Revisions))
	}
	for _, r := range facts.Revisions {
		name := revision(r.Name)
		delays := overloads(t, retry.MongoDBConfig{Revision: name, Rand: noJitter}, overload)
		var want []time.Duration
		for _, ms := range r.Delays {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		if !slices.Equal(delays, want) || len(delays) != r.MaxRetries {
			t.Errorf("%s: delays %v, want %v", name, delays, want)
		}
		longest := overloads(t, retry.MongoDBConfig{Revision: name, MaxRetries: 20, Rand: noJitter}, overload)
		if last := longest[len(longest)-1]; len(longest) != 20 || last != time.Duration(r.Cap)*time.Millisecond {
			t.Errorf("%s: %d retries, the last after %v; want 20, %d ms", name, len(longest), last, r.Cap)
		}
	}
}

// TestMongoDBBucket plays the events of each case. What they cost and earn must
// also be what the file says of the revision.
func TestMongoDBBucket(t *testing.T) {
	var facts mongoDB
	vectors(t, "mongodb_backpressure.json", &facts)
	prices := facts.Revisions[0].Bucket
	for _, c := range facts.Buckets {
		b := bucket(prices.Capacity, c.Start)
		s := must(retry.NewMongoDB(retry.MongoDBConfig{Budget: b}))
		token, sum := s.Begin(spillway.Call{}), c.Start
		var reason retry.Reason
		for _, event := range c.Events {
			kind, _, _ := strings.Cut(event, "@")
			switch {
			case kind == "overload":
				reason, _ = refresh(s, &token, overload)
			case kind == "consume" && reason == retry.ReasonOther:
				sum -= prices.Cost
			case kind == "consume_denied" && reason == retry.ReasonBudget:
			case kind == "fail_not_overload":
				refresh(s, &token, notOverload)
				sum += prices.HealthyRetry
			case event == "success@0":
				s.Succeed(token)
				sum += prices.First
			case kind == "success":
				s.Succeed(token)
				sum += prices.Retried
			default:
				t.Errorf("%s: %s, but %v", c.Name, event, reason)
			}
		}
		got := b.Stats(time.Time{}).Tokens
		if math.Abs(got-c.End) > 1e-9 || math.Abs(got-min(sum, prices.Capacity)) > 1e-9 {
			t.Errorf("%s: %v tokens, want %v", c.Name, got, c.End)
		}
	}
}

// TestMongoDBProse replays the tests that the specification describes in prose
// for its revision of July 2026.
func TestMongoDBProse(t *testing.T) {
	var facts mongoDB
	vectors(t, "mongodb_backpressure.json", &facts)
	sum := func(u float64) int {
		c := retry.MongoDBConfig{Revision: "2026-07", Rand: func() float64 { return u }}
		var all time.Duration
		for _, d := range overloads(t, c, overload) {
			all += d
		}
		return int(all.Milliseconds())
	}
	for _, p := range facts.Prose {
		c := retry.MongoDBConfig{Revision: "2026-07"}
		f := overload
		switch {
		case p.Sum1 != nil:
			if got0, got1 := sum(0), sum(1); got0 != *p.Sum0 || got1 != *p.Sum1 {
				t.Errorf("%s: %d to %d ms, want %d to %d", p.Name, got0, got1, *p.Sum0, *p.Sum1)
			}
			continue
		case p.Name == "maxAdaptiveRetries=1":
			c.MaxRetries = 1
		case strings.HasSuffix(p.Name, "without RetryableError"):
			f.Safety = fault.RetryUnknown
		}
		if started := 1 + len(overloads(t, c, f)); started != p.Started {
			t.Errorf("%s: %d commands, want %d", p.Name, started, p.Started)
		}
	}
}

// TestMongoDBMixtures holds the rules on the interaction of retry policies:
// attempts are counted across policies, the cap comes with the first overload
// and stays, and there is a backoff and a charge if and only if the failure is
// an overload. O is an overload, x another retryable failure.
func TestMongoDBMixtures(t *testing.T) {
	const unlimited = -1
	for _, test := range []struct {
		failures string
		other    int // OtherRetries
		deadline time.Duration
		delays   []int   // of each retry, in ms
		tokens   float64 // left of 500
	}{
		{"xx", 0, 0, []int{0}, 501},
		{"xO", 0, 0, []int{0, 200}, 499},
		{"OOOOOO", 0, 0, []int{100, 200, 400, 800, 1600}, 495},
		{"Oxxxxx", 0, 0, []int{100, 0, 0, 0, 0}, 504},
		{"xOOOOO", 0, 0, []int{0, 200, 400, 800, 1600}, 496},
		{"xxx", 2, 0, []int{0, 0}, 502},
		{"xx", unlimited, 0, []int{0}, 501},
		{"xxxxxxxxxx", unlimited, time.Hour, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 509},
		{"xxxxxxxO", unlimited, time.Hour, []int{0, 0, 0, 0, 0, 0, 0}, 506},
		{"xxxO", unlimited, time.Hour, []int{0, 0, 0, 800}, 501},
		{"Oxxxxx", unlimited, time.Hour, []int{100, 0, 0, 0, 0}, 504},
	} {
		b := bucket(1000, 500)
		s := must(retry.NewMongoDB(retry.MongoDBConfig{OtherRetries: test.other, Budget: b, Rand: noJitter}))
		var call spillway.Call
		if test.deadline > 0 {
			call.Deadline = t0.Add(test.deadline)
		}
		token := s.Begin(call)
		var delays []int
		for i, c := range test.failures {
			f := notOverload
			if c == 'O' {
				f = overload
			}
			reason, delay := refresh(s, &token, f)
			if reason == retry.ReasonOther {
				delays = append(delays, int(delay.Milliseconds()))
			} else if reason != retry.ReasonAttempts || i != len(test.failures)-1 {
				t.Errorf("%s: attempt %d: %v", test.failures, i, reason)
			}
		}
		if !slices.Equal(delays, test.delays) || b.Stats(time.Time{}).Tokens != test.tokens {
			t.Errorf("%s: delays %v, %v tokens; want %v, %v", test.failures, delays, b.Stats(time.Time{}).Tokens, test.delays, test.tokens)
		}
	}
}

// TestMongoDBCanceled: a retry whose caller left says nothing about the server.
func TestMongoDBCanceled(t *testing.T) {
	b := bucket(1000, 500)
	s := must(retry.NewMongoDB(retry.MongoDBConfig{Budget: b}))
	token := s.Begin(spillway.Call{})
	refresh(s, &token, overload)
	if reason, _ := refresh(s, &token, fault.Failure{Canceled: true}); reason != retry.ReasonCanceled {
		t.Error(reason)
	}
	wantTokens(t, b, 499)
}

func TestMongoDBReadsAndWrites(t *testing.T) {
	for _, test := range []struct {
		kind              spillway.Kind
		noReads, noWrites bool
		want              retry.Reason
	}{
		{spillway.KindRead, false, true, retry.ReasonOther},
		{spillway.KindRead, true, false, retry.ReasonDisabled},
		{spillway.KindWrite, true, false, retry.ReasonOther},
		{spillway.KindWrite, false, true, retry.ReasonDisabled},
		{spillway.KindUnknown, false, false, retry.ReasonOther},
		{spillway.KindUnknown, true, false, retry.ReasonDisabled},
		{spillway.KindUnknown, false, true, retry.ReasonDisabled},
	} {
		s := must(retry.NewMongoDB(retry.MongoDBConfig{NoReads: test.noReads, NoWrites: test.noWrites}))
		for _, f := range []fault.Failure{overload, notOverload} {
			token := s.Begin(spillway.Call{Kind: test.kind})
			if got, _ := refresh(s, &token, f); got != test.want {
				t.Errorf("%+v: %v", test, got)
			}
		}
	}
}

// TestMongoDBEligibility: after an overload, a retry is safe only if the server says so,
// whatever the call does; after any other failure, the kind of the call counts as well.
func TestMongoDBEligibility(t *testing.T) {
	read := spillway.Call{Kind: spillway.KindRead}
	for _, test := range []struct {
		call spillway.Call
		f    fault.Failure
		want retry.Reason
	}{
		{spillway.Call{}, overload, retry.ReasonOther},
		{read, fault.Failure{Overload: true}, retry.ReasonNotRetryable},
		{read, fault.Failure{Overload: true, Unprocessed: true}, retry.ReasonOther},
		{read, fault.Failure{Overload: true, Safety: fault.RetryUnsafe}, retry.ReasonNotRetryable},
		{read, fault.Failure{}, retry.ReasonOther},
		{spillway.Call{}, fault.Failure{}, retry.ReasonNotRetryable},
		{spillway.Call{Idempotent: true}, fault.Failure{}, retry.ReasonOther},
	} {
		s := must(retry.NewMongoDB(retry.MongoDBConfig{}))
		token := s.Begin(test.call)
		if got, _ := refresh(s, &token, test.f); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestMongoDBDeadline: the check comes before the charge, and before any wait.
func TestMongoDBDeadline(t *testing.T) {
	b := bucket(1000, 10)
	s := must(retry.NewMongoDB(retry.MongoDBConfig{Budget: b, Rand: noJitter}))
	for deadline, want := range map[time.Duration]retry.Reason{
		100 * time.Millisecond: retry.ReasonDeadline,
		101 * time.Millisecond: retry.ReasonOther,
	} {
		token := s.Begin(spillway.Call{Deadline: t0.Add(deadline)})
		if got, _ := refresh(s, &token, overload); got != want {
			t.Errorf("deadline in %v: %v, want %v", deadline, got, want)
		}
	}
	if got := b.Stats(time.Time{}).Tokens; got != 9 {
		t.Errorf("%v tokens left after one retry, want 9", got)
	}
}

func TestMongoDBDeprioritizedServers(t *testing.T) {
	for _, test := range []struct {
		config retry.MongoDBConfig
		want   string
	}{
		{retry.MongoDBConfig{}, "a b"},
		{retry.MongoDBConfig{Revision: "2026-07"}, "b"}, // other policies always deprioritise
		{retry.MongoDBConfig{Revision: "2026-07", Retarget: true}, "a b"},
	} {
		s := must(retry.NewMongoDB(test.config))
		token := s.Begin(spillway.Call{})
		for _, attempt := range []struct {
			server string
			f      fault.Failure
		}{{"a", overload}, {"b", notOverload}} {
			token.Attempt().Use(attempt.server)
			refresh(s, &token, attempt.f)
		}
		if got := strings.Join(token.Attempt().Deprioritized(), " "); got != test.want {
			t.Errorf("%+v: deprioritised %q, want %q", test.config, got, test.want)
		}
		s.Release(token, fault.Failure{})
		if got := s.Begin(spillway.Call{}).Attempt().Deprioritized(); len(got) != 0 {
			t.Errorf("the next call begins with %q", got)
		}
	}
}

// TestMongoDBBase: in the revision of July 2026 the server may set the base.
func TestMongoDBBase(t *testing.T) {
	f := overload
	f.RetryAfter, f.HasRetryAfter = 50*time.Millisecond, true
	c := retry.MongoDBConfig{Revision: "2026-07", MaxRetries: 3, Rand: noJitter}
	want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	if got := overloads(t, c, f); !slices.Equal(got, want) {
		t.Errorf("delays %v, want %v", got, want)
	}
	other := f
	other.Overload = false
	if got := overloads(t, c, other); !slices.Equal(got, []time.Duration{0}) {
		t.Errorf("delays after another failure %v, want one of 0", got)
	}
	f.RetryAfter = 0 // not positive: ignored
	if got := overloads(t, c, f)[0]; got != 200*time.Millisecond {
		t.Errorf("without a base the first delay is %v, want 200ms", got)
	}
}
