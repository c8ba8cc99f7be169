package decisions

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// samplesText returns the text of /debug/decisions.
func samplesText(l *Log) string {
	w := httptest.NewRecorder()
	l.ServeSamples(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Body.String()
}

// TestSamplesText: the text has what JSON has, under the same names, and fits into 100 columns.
func TestSamplesText(t *testing.T) {
	l := New(nil)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	e := spillway.Rejection(&spillway.RejectedError{
		Policy: "quota", Reason: spillway.ReasonQuota, Level: 23, Limit: 10, Unit: "per second as its part of capacity", Setting: "capacity",
	})
	e.Time, e.Policy, e.Call = at, "quota", spillway.Call{Key: "web: /api/", Customer: "acme", Criticality: spillway.Critical}
	l.Observe(about(e, described{"/api/orders/7", "id-1", "4bf92f3577b34da6a3ce929d0e0e4736", "192.0.2.1"}))
	wait := spillway.Rejection(&spillway.RejectedError{
		Policy: "shed", Reason: spillway.ReasonMaxWait, Level: 100, Limit: 100, Unit: "ms waited", Setting: "max_wait",
	})
	wait.Time, wait.Policy, wait.Mode, wait.Call = at.Add(-time.Second), "shed", spillway.ModeObserve, spillway.Call{Key: "web: /", Criticality: spillway.Sheddable}
	l.Observe(wait)
	other := spillway.Rejection(fmt.Errorf("the gate of an extension is closed"))
	other.Time, other.Policy, other.Call = at.Add(-2*time.Second), "extension", spillway.Call{Key: "web: /", Criticality: spillway.Sheddable}
	l.Observe(other)
	const want = `TIME                     REASON         POLICY       MODE     CLASS           CUSTOMER
2026-01-02 03:04:05.678  quota          quota        enforce  CRITICAL        acme
    listener main, cluster web, route /api/, path /api/orders/
    request_id id-1, trace_id 4bf92f3577b34da6a3ce929d0e0e4736, caller 192.0.2.1, attempt 1
    measured: 23 of 10 per second as its part of capacity; setting: capacity
2026-01-02 03:04:04.678  max_wait       shed         observe  SHEDDABLE       –
    cluster web, route /
    attempt 1
    measured: would have waited 100 ms, and may wait for 100 ms; setting: max_wait
2026-01-02 03:04:03.678  other          extension    enforce  SHEDDABLE       –
    cluster web, route /
    attempt 1
    error: the gate of an extension is closed
3 samples; 3 rejections since the start

WHAT TO DO, by policy, reason and setting
quota quota capacity
    do: All customers together have used up the capacity of the quota: raise it only if the service
      can do more.
    settings: clusters[web].quota.capacity
    link: https://github.com/seed90641741/spillway/blob/main/docs/runbook.md#quota
shed max_wait max_wait
    do: Requests waited for max_wait: add capacity, or find out what made the service slow; a
      deadline lets requests wait longer.
    settings: clusters[web].shed.max_wait
    link: https://github.com/seed90641741/spillway/blob/main/docs/runbook.md#max_wait
extension other
    do: Look the request up in /debug/decisions, which has the text of the error.
    link: https://github.com/seed90641741/spillway/blob/main/docs/runbook.md#other
`
	if got := samplesText(l); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestHostileSamples: whatever names the client and the configuration have, a sample has no forged line,
// no control character, or a line of more than 100 columns but for one word.
func TestHostileSamples(t *testing.T) {
	for name, value := range map[string]string{
		"a line of its own":  "x\n2026-01-02 03:04:05.678  quota          quota        enforce  CRITICAL        forged",
		"control characters": "\x1b[31mred\x1b[0m\a\b\r\x00\u0085\u2028",
		"right to left":      "\u202egnp.exe\u2066\u200f",
		"not UTF-8":          "\xff\xfe",
		"HTML":               "<script>alert(1)</script>",
		"long":               strings.Repeat("route ", 1400),
		"one long word":      strings.Repeat("x", 8192),
	} {
		l := New(nil)
		e := rejection(0, spillway.ReasonQuota, value)
		e.Time, e.Call.Key = time.Now(), value+": /"+value
		l.Observe(about(e, described{value, value, "", "192.0.2.1"}))
		l.Reject(e.Time, accounts.NoRoute, e.Call, described{value, value, "", "192.0.2.1"}, 0, 0, "")
		rows := 0
		for line := range strings.Lines(samplesText(l)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "20") {
				rows++
				line, _, _ = strings.Cut(line, Clean(value)) // the customer, which is the last column
			}
			longest := 0
			for word := range strings.FieldsSeq(line) {
				longest = max(longest, utf8.RuneCountInString(word))
			}
			if n := utf8.RuneCountInString(line); n > columns && longest < columns {
				t.Errorf("%s: a line of %d columns: %s", name, n, line)
			}
			if i := strings.IndexFunc(line, func(r rune) bool { return r != '\uFFFD' && Clean(string(r)) != string(r) }); i >= 0 {
				t.Errorf("%s: %q", name, line)
			}
		}
		if rows != 2 {
			t.Errorf("%s: %d samples instead of 2", name, rows)
		}
	}
}
