package budget_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/budget"
)

// vectors reads a file of facts into v.
func vectors(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile("../conformance/retry/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

// TestFinagle deposits for each request and counts the retries that are then
// allowed at once.
func TestFinagle(t *testing.T) {
	var file struct {
		Finagle struct {
			Defaults struct {
				TTL     float64 `json:"ttl_s"`
				Min     float64 `json:"min_retries_per_s"`
				Percent float64
			}
			InitialBalance float64 `json:"initial_balance"`
			Cases          []struct {
				Min, Percent *float64
				Deposits     int
				Allowed      int `json:"retries_allowed_at_once"`
			}
		}
	}
	vectors(t, "budgets.json", &file)
	finagle := file.Finagle
	if len(finagle.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range finagle.Cases {
		perSecond, percent := finagle.Defaults.Min, finagle.Defaults.Percent
		if c.Min != nil {
			perSecond, percent = *c.Min, *c.Percent
		}
		b := must(budget.New(budget.Config{Capacity: 1000, Empty: true, MinPerSecond: perSecond}))
		if got := b.Stats(time.Time{}).Tokens; got != perSecond*finagle.Defaults.TTL {
			t.Errorf("%v per second: starts with %v tokens", perSecond, got)
		}
		for range c.Deposits {
			b.Deposit("", percent)
		}
		allowed := 0
		for ok := true; ok; allowed++ {
			_, _, ok = b.Withdraw(t0, "", 1)
		}
		if allowed--; allowed != c.Allowed {
			t.Errorf("%+v: %d retries allowed, want %d", c, allowed, c.Allowed)
		}
	}
	b := must(budget.New(budget.Config{Empty: true, MinPerSecond: finagle.Defaults.Min}))
	if got := b.Stats(time.Time{}).Tokens; got != finagle.InitialBalance {
		t.Errorf("initial balance %v, want %v", got, finagle.InitialBalance)
	}
}

type a6 struct {
	Throttling struct {
		Config struct{ MaxTokens, TokenRatio float64 }
		Cases  []struct {
			Events       string
			Tokens       []float64
			Allowed      []*bool  `json:"retry_allowed"`
			FinalTokens  *float64 `json:"final_tokens"`
			FinalAllowed bool     `json:"final_retry_allowed"`
		}
	}
	Validation [][2]string
}

func TestA6Throttling(t *testing.T) {
	var file a6
	vectors(t, "grpc_a6.json", &file)
	if len(file.Throttling.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Throttling.Cases {
		r := must(budget.NewRetryThrottling(file.Throttling.Config.MaxTokens, file.Throttling.Config.TokenRatio))
		var allowed bool
		for i, event := range c.Events {
			if event == 'S' {
				r.Deposit("", 0)
			} else {
				_, _, allowed = r.Withdraw(t0, "", 0)
			}
			if c.Tokens != nil && math.Abs(r.Tokens()-c.Tokens[i]) > 1e-9 {
				t.Errorf("%s: %v tokens after event %d, want %v", c.Events, r.Tokens(), i, c.Tokens[i])
			}
			if c.Allowed != nil && c.Allowed[i] != nil && allowed != *c.Allowed[i] {
				t.Errorf("%s: retry allowed %v after event %d", c.Events, allowed, i)
			}
		}
		if c.FinalTokens != nil && (math.Abs(r.Tokens()-*c.FinalTokens) > 1e-9 || allowed != c.FinalAllowed) {
			t.Errorf("%s: %v tokens, %v; want %v, %v", c.Events, r.Tokens(), allowed, *c.FinalTokens, c.FinalAllowed)
		}
	}
}

// TestA6Validation replays the rows about the two numbers of the policy.
func TestA6Validation(t *testing.T) {
	var file a6
	vectors(t, "grpc_a6.json", &file)
	replayed := 0
	for _, row := range file.Validation {
		field, value, _ := strings.Cut(row[0], " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch field {
		case "maxTokens":
			if _, err := budget.NewRetryThrottling(n, .1); (err != nil) != (row[1] == "invalid") {
				t.Errorf("%v: %v", row, err)
			}
		case "tokenRatio":
			r := must(budget.NewRetryThrottling(10, n))
			for range 10 {
				r.Withdraw(t0, "", 1)
			}
			r.Deposit("", 1)
			if got := strconv.FormatFloat(r.Tokens(), 'g', 6, 64); got != row[1] {
				t.Errorf("%v: a success is worth %v", row, got)
			}
		default:
			continue
		}
		replayed++
	}
	if replayed != 3 {
		t.Errorf("replayed %d rows, want 3", replayed)
	}
}

func TestRetryThrottlingBounds(t *testing.T) {
	for _, bad := range [][2]float64{{-1, 1}, {math.NaN(), 1}, {10, 0}, {10, -1}, {10, math.NaN()}, {10, .0009}, {10, math.Inf(1)}} {
		if _, err := budget.NewRetryThrottling(bad[0], bad[1]); err == nil {
			t.Errorf("NewRetryThrottling(%v, %v) succeeds", bad[0], bad[1])
		}
	}
	for _, good := range [][2]float64{{1000, 1}, {10, .001}, {10, math.MaxInt32}} {
		if _, err := budget.NewRetryThrottling(good[0], good[1]); err != nil {
			t.Errorf("NewRetryThrottling(%v, %v): %v", good[0], good[1], err)
		}
	}
	r := must(budget.NewRetryThrottling(3, .57))
	for range 5 {
		r.Withdraw(t0, "", 1)
	}
	if left, capacity, ok := r.Withdraw(t0, "", 1); left != 0 || capacity != 1.5 || ok {
		t.Errorf("when empty: %v of %v usable, %v", left, capacity, ok)
	}
	if r.Deposit("", 1); math.Abs(r.Tokens()-.57) > 1e-9 {
		t.Errorf("one success above the floor is %v, want 0.57", r.Tokens())
	}
	exact := must(budget.NewRetryThrottling(10, 1.001))
	exact.Withdraw(t0, "", 1)
	exact.Withdraw(t0, "", 1)
	if exact.Deposit("", 1); math.Abs(exact.Tokens()-9.001) > 1e-9 {
		t.Errorf("a ratio of 1.001 makes %v of 8", exact.Tokens())
	}
	for range 100 {
		r.Deposit("", 1)
	}
	if r.Tokens() != 3 {
		t.Errorf("after 100 successes %v tokens, want 3", r.Tokens())
	}
}

// TestRatioOfOriginals holds why the ratio is one of originals: where retries
// earn as well, each of them pays for a tenth of another.
func TestRatioOfOriginals(t *testing.T) {
	var file struct {
		Amplification struct {
			Tolerance   float64
			OfOriginals float64 `json:"with_10pct_of_originals"`
			OfAll       float64 `json:"with_10pct_of_all_requests"`
		}
	}
	vectors(t, "sre_ch21.json", &file)
	const originals = 10000
	amplification := func(retriesEarn float64) float64 {
		b := must(budget.New(budget.Config{Empty: true}))
		sent := 0
		for range originals {
			b.Deposit("", .1)
			sent++
			for _, _, ok := b.Withdraw(t0, "", 1); ok; _, _, ok = b.Withdraw(t0, "", 1) {
				b.Deposit("", retriesEarn)
				sent++
			}
		}
		return float64(sent) / originals
	}
	if got := amplification(0); got > 1.1 || got < file.Amplification.OfOriginals-file.Amplification.Tolerance {
		t.Errorf("a tenth of originals: %v, want %v", got, file.Amplification.OfOriginals)
	}
	if got := amplification(.1); math.Abs(got-file.Amplification.OfAll) > .001 {
		t.Errorf("a tenth of all requests: %v, want %v", got, file.Amplification.OfAll)
	}
}
