package spillhttp

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/hints"
)

var now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// TestRetryAfterVectors replays the vectors that all adapters share.
func TestRetryAfterVectors(t *testing.T) {
	data, err := os.ReadFile("../conformance/retry/retry_after_parsing.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Now        string
		RetryAfter [][2]any `json:"retry_after"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	at, err := http.ParseTime(vectors.Now)
	if err != nil || len(vectors.RetryAfter) == 0 {
		t.Fatalf("now: %v, %d vectors", err, len(vectors.RetryAfter))
	}
	for _, v := range vectors.RetryAfter {
		text, ok := v[0].(string)
		if !ok {
			t.Fatalf("vector %v", v)
		}
		got, ok := retryAfter(http.Header{"Retry-After": {text}}, at)
		switch want := v[1].(type) {
		case nil:
			if ok {
				t.Errorf("%q is %v, want it ignored", text, got)
			}
		case float64:
			if !ok || got != time.Duration(want)*time.Millisecond {
				t.Errorf("%q is %v, %v; want %v ms", text, got, ok, want)
			}
		case string: // absent, or a choice that is ours
			if want == "absent" && ok || got < 0 || got > hints.Max {
				t.Errorf("%q is %v, %v; want %s", text, got, ok, want)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, row := range []struct {
		ms, after string
		want      time.Duration
		ok        bool
	}{
		{"", "Friday, 20-Nov-26 08:00:30 GMT", 30 * time.Second, true}, // the obsolete forms of RFC 9110
		{"", "Fri Nov 20 08:00:30 2026", 30 * time.Second, true},
		{"", "Fri, 20 Nov 2026 08:00:30 CET", 0, false},
		{"", "Thu, 01 Jan 1970 00:00:00 GMT", 0, true},
		{"", "Fri, 31 Dec 9999 23:59:59 GMT", hints.Max, true},
		{"", "31536001", hints.Max, true},
		{"", "\t7 ", 7 * time.Second, true},
		{"", "+7", 0, false},
		{"", "0x7", 0, false},
		{"", "7 7", 0, false},
		{"", "٧", 0, false},
		{"1500", "", 1500 * time.Millisecond, true},
		{"1500", "9", 1500 * time.Millisecond, true},
		{"0", "9", 0, true},
		{"-5", "9", 9 * time.Second, true},
		{"99999999999999999999999", "", hints.Max, true},
	} {
		h := http.Header{}
		if row.ms != "" {
			h.Set("retry-after-ms", row.ms)
		}
		if row.after != "" {
			h.Set("retry-after", row.after)
		}
		if got, ok := retryAfter(h, now); got != row.want || ok != row.ok {
			t.Errorf("%q, %q: %v, %v; want %v, %v", row.ms, row.after, got, ok, row.want, row.ok)
		}
	}
	if _, ok := retryAfter(http.Header{"Retry-After": {}}, now); ok {
		t.Error("a hint from a header without a value")
	}
}

// FuzzAnswer feeds hostile headers: whatever they say, a hint is within bounds,
// and a no stays a no.
func FuzzAnswer(f *testing.F) {
	f.Add(503, "120", "", "false", "true")
	f.Add(429, "Fri, 20 Nov 2026 08:00:30 GMT", "99999999999999999999", "TRUE", "")
	f.Add(200, "-1", "1e9", "no", "0")
	f.Fuzz(func(t *testing.T, status int, after, ms, should, overloaded string) {
		h := http.Header{
			headerRetryAfter: {after}, headerRetryAfterMs: {ms}, headerShouldRetry: {should}, headerOverloaded: {overloaded},
			headerCriticality: {after},
		}
		got, failed := failureOf(status, h, now)
		if got.RetryAfter < 0 || got.RetryAfter > hints.Max || got.RetryAfter > 0 && !got.HasRetryAfter {
			t.Errorf("hint %v from %q and %q", got.RetryAfter, after, ms)
		}
		if status < 400 && failed {
			t.Errorf("%d is a failure", status)
		}
		if should == "false" && failed && got.Retryable(true) {
			t.Error("retryable although the server says no")
		}
		x := exchange{own: ownOf(h)}
		if x.label(t.Context()); !x.class.Valid() {
			t.Errorf("criticality %v from %q", x.class, after)
		}
	})
}
