package decisions

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// TestPages: what /debug/decisions and /debug/top write, as text and as JSON.
func TestPages(t *testing.T) {
	l := New(nil)
	get := func(h http.HandlerFunc, query string) (int, string) {
		w := httptest.NewRecorder()
		h(w, httptest.NewRequest(http.MethodGet, "/?"+query, nil))
		return w.Code, w.Body.String()
	}
	if _, text := get(l.ServeSamples, "format=json"); !strings.Contains(text, `"decisions": []`) {
		t.Errorf("without a rejection: %s", text)
	}
	e := rejection(0, spillway.ReasonQuota, "acme")
	e.Time = time.Now()
	l.Observe(about(e, described{"/api/a", "id-a", "", "192.0.2.1"}))
	var page samplesPage
	code, text := get(l.ServeSamples, "format=json&customer=acme")
	if err := json.Unmarshal([]byte(text), &page); err != nil || code != http.StatusOK || page.Seen != 1 || len(page.Decisions) != 1 {
		t.Fatalf("%v: %d %s", err, code, text)
	}
	if d, do := page.Decisions[0], page.Reasons["shed quota"]; d.RequestID != "id-a" || do.Do == "" || len(do.Settings) == 0 || !strings.HasSuffix(do.Link, "#quota") {
		t.Errorf("%+v, %+v", d, do)
	} else if !slices.Equal(do.Settings, []string{"clusters[web].quota"}) {
		t.Errorf("the settings are %q, and are to be those of the cluster", do.Settings)
	}
	var tops Tops
	_, text = get(l.ServeTop, "format=json")
	if err := json.Unmarshal([]byte(text), &tops); err != nil || len(tops.Customers.Rows) != 1 || tops.Callers.Rows[0].Name != "192.0.2.1" {
		t.Errorf("%v: %s", err, text)
	}
	for query, want := range map[string]string{
		"":               "id-a",
		"request_id=x":   "0 samples; 1 rejections since the start",
		"n=0":            "n must be 1 to 2000",
		"format=xml":     "must be text or json",
		"costumer=acme":  "unknown parameter",
		"since=tomorrow": "must be a time such as",
	} {
		if code, text := get(l.ServeSamples, query); !strings.Contains(text, want) || (code == http.StatusOK) != (query == "" || query == "request_id=x") {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	for query, want := range map[string]string{"": "The counts are exact.", "n=5": "routes that share a key have one row", "n=101": "n must be 1 to 100"} {
		if _, text := get(l.ServeTop, query); !strings.Contains(text, want) {
			t.Errorf("%s: %s", query, text)
		}
	}
}

// TestWithoutCustomer: requests without a customer have one name in the top list, and a customer that
// calls itself so is in quotes.
func TestWithoutCustomer(t *testing.T) {
	l := New(nil)
	for customer, n := range map[string]int{"": 30, NoCustomer: 20, `"(no customer)"`: 10, "acme": 5} {
		for range n {
			e := rejection(0, spillway.ReasonQueueFull, customer)
			e.Time = time.Now()
			l.Observe(e)
		}
	}
	w := httptest.NewRecorder()
	l.ServeTop(w, httptest.NewRequest(http.MethodGet, "/", nil))
	var got []string
	for line := range strings.Lines(w.Body.String()) {
		if name, rest, ok := strings.Cut(line, "queue_full"); ok && !strings.HasPrefix(line, "/") {
			fields := strings.Fields(rest)
			got = append(got, strings.TrimSpace(name)+" "+fields[len(fields)-1])
		}
	}
	want := []string{"(no customer) 30", `"(no customer)" 20`, `"\"(no customer)\"" 10`, "acme 5"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q in\n%s", got, want, w.Body)
	}
	if rows := l.Top(time.Now(), 10).Customers.Rows; rows[0].Name != "" || rows[0].Count != 30 {
		t.Errorf("in JSON no customer is the empty name: %+v", rows)
	}
}

// TestSharedLimit: what to do about a quota depends on the limit that rejects.
func TestSharedLimit(t *testing.T) {
	for _, row := range []struct{ customer, setting, reason, field string }{
		{"acme", "", "shed quota", "clusters[web].quota"},
		{"acme", "unlisted_total", "shed quota unlisted_total", "clusters[web].quota.unlisted_total"},
		{"", "unlisted_total", "shed quota unlisted_total", "clusters[web].quota.unlisted_total"},
		{"acme", "capacity", "shed quota capacity", "clusters[web].quota.capacity"},
		{"", "", "shed quota no_customer", "routes[/api/].customer"},
	} {
		var lines strings.Builder
		l := New(slog.New(slog.NewJSONHandler(&lines, nil)))
		e := rejection(0, spillway.ReasonQuota, row.customer)
		e.Time, e.Err = time.Now(), &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQuota, Unit: "per second", Setting: row.setting}
		l.Observe(e)
		w := httptest.NewRecorder()
		l.ServeSamples(w, httptest.NewRequest(http.MethodGet, "/?format=json", nil))
		var page samplesPage
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		what, ok := page.Reasons[row.reason]
		if !ok || what.Settings[0] != row.field || page.Decisions[0].Setting != row.setting {
			t.Errorf("%+v: %s", row, w.Body)
		}
		var line struct{ Do, Settings, Setting string }
		if err := json.Unmarshal([]byte(lines.String()), &line); err != nil || line.Do != what.Do || line.Setting != row.setting || !strings.HasPrefix(line.Settings, row.field) {
			t.Errorf("%+v: %v in the log: %s", row, err, lines.String())
		}
	}
}

// TestRateLimitMeasuresNothing: the limit is not shown as what was measured.
func TestRateLimitMeasuresNothing(t *testing.T) {
	var lines strings.Builder
	l := New(slog.New(slog.NewJSONHandler(&lines, nil)))
	e := rejection(0, spillway.ReasonRateLimit, "")
	e.Time, e.Limit = time.Now(), 10
	e.Err = &spillway.RejectedError{Policy: "ratelimit", Reason: spillway.ReasonRateLimit, Limit: 10, Unmeasured: true, Unit: "per second"}
	l.Observe(e)
	d, ok := l.Last("shed", "rate_limit", "enforce")
	if !ok || d.Measured != nil || d.Limit != 10 {
		t.Errorf("%+v", d)
	}
	if text := samplesText(l); !strings.Contains(text, "\n    limit: 10 per second\n") || strings.Contains(text, "measured") {
		t.Error(text)
	}
	if line := lines.String(); strings.Contains(line, `"measured":10`) || strings.Contains(line, `"measured":0`) || !strings.Contains(line, `"limit":10`) {
		t.Error(line)
	}
}

// A measure without a limit has no limit of 0.
func TestMeasuredWithoutLimit(t *testing.T) {
	for want, d := range map[string]Decision{
		"    measured: 0.3 of the calls\n":                                {Measured: new(0.3), Unit: "of the calls"},
		"    measured: 3 of 4 requests\n":                                 {Measured: new(3.0), Limit: 4, Unit: "requests"},
		"    measured: waited 100 ms, and may wait for 100 ms\n":          {Measured: new(100.0), Limit: 100, Unit: "ms waited", Reason: "max_wait", Mode: "enforce"},
		"    measured: would have waited 90 ms, and may wait for 90 ms\n": {Measured: new(90.0), Limit: 90, Unit: "ms waited", Reason: "max_wait", Mode: "observe"},
	} {
		var b strings.Builder
		if New(nil).writeDecisions(&b, []Decision{d}, 1); !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
}
