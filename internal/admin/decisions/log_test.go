package decisions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/frequent"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// a described request is a Source.
type described struct {
	path, id, trace, caller string
}

// Place implements [Source].
func (described) Place() (route, customer string) { return "", "" }

// a placed request is a Source that knows the route and the customer.
type placed struct{ described }

// Place implements [Source].
func (placed) Place() (route, customer string) { return "web: /report", "of the request" }

func (s described) Describe(d *Decision) {
	d.Listener, d.Path, d.RequestID, d.TraceID, d.Caller = "main", PathPrefix(s.path), Clean(s.id), s.trace, s.caller
}

func (s described) Caller() string { return s.caller }

// rejection returns the event of a rejection.
func rejection(at time.Duration, reason spillway.Reason, customer string) spillway.Event {
	e := spillway.Rejection(&spillway.RejectedError{Policy: "shed", Reason: reason, Level: 9, Limit: 10, Unit: "requests"})
	e.Time, e.Policy = start.Add(at), "shed"
	e.Call = spillway.Call{Key: "web: /api/", Customer: customer, Criticality: spillway.Sheddable}
	return e
}

func about(e spillway.Event, s described) spillway.Event {
	e.Context = context.WithValue(context.Background(), SourceKey{}, s)
	return e
}

// TestTopNamesTheRoute: policies that are asked for an attempt name the cluster only. The list has the
// route and the customer of the request, in both modes.
func TestTopNamesTheRoute(t *testing.T) {
	for _, mode := range []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve} {
		l := New(nil)
		e := rejection(0, spillway.ReasonMaxInFlight, "")
		e.Call.Key, e.Policy, e.Mode = "web", "inflight", mode
		e.Context = context.WithValue(context.Background(), SourceKey{}, placed{described{"/report/1", "id", "", "192.0.2.1"}})
		l.Observe(e)
		all := l.Top(start, 10)
		if len(all.Routes.Rows) != 1 || all.Routes.Rows[0].Name != "web: /report" || len(all.Customers.Rows) != 1 || all.Customers.Rows[0].Name != "of the request" {
			t.Errorf("%v: %+v, %+v", mode, all.Routes, all.Customers)
		}
		if d, ok := l.Last("inflight", spillway.ReasonMaxInFlight.String(), mode.String()); !ok || d.Route != "/report" {
			t.Errorf("%v: %+v", mode, d)
		}
	}
}

// TestAClassHidesNoOther: a rejected CRITICAL request has a line and a sample during a flood of
// SHEDDABLE ones in the same second.
func TestAClassHidesNoOther(t *testing.T) {
	var log bytes.Buffer
	l := New(slog.New(slog.NewJSONHandler(&log, nil)))
	for range 1000 {
		l.Observe(rejection(0, spillway.ReasonQueueFull, "acme"))
	}
	e := rejection(0, spillway.ReasonQueueFull, "acme")
	e.Call.Criticality = spillway.Critical
	l.Observe(e)
	if all, seen := l.Read(&Filter{Reason: "queue_full", Class: "CRITICAL"}, 10); len(all) != 1 || seen != 1001 {
		t.Errorf("%d samples, %d rejections", len(all), seen)
	}
	if n := strings.Count(log.String(), `"class":"CRITICAL"`); n != 1 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

func TestLinesHaveARate(t *testing.T) {
	for _, row := range []struct {
		rate  float64
		lines int
		last  float64 // left out before the last line
	}{
		{1, 11, 99}, {5, 55, 19}, {0.5, 6, 199}, {1000, 1001, 0}, {-1, 0, 0},
	} {
		var log bytes.Buffer
		heard := 0
		l := New(slog.New(slog.NewJSONHandler(&log, nil)))
		if err := l.SetRate(row.rate); err != nil {
			t.Fatal(err)
		}
		o := l.Before(spillway.ObserverFunc(func(spillway.Event) { heard++ }))
		for i := range 1001 { // a hundred per second
			e := rejection(time.Duration(i)*10*time.Millisecond, spillway.ReasonQueueFull, "acme")
			o.Observe(about(e, described{"/api/orders/7", "id-1", "", "192.0.2.1"}))
			o.Observe(spillway.Event{Outcome: spillway.OutcomeServed})
		}
		if heard != 2002 {
			t.Errorf("%v: the next observer got %d events", row.rate, heard)
		}
		lines, left := 0, 0.0
		var last map[string]any
		for d := json.NewDecoder(&log); d.More(); lines++ {
			last = nil
			if err := d.Decode(&last); err != nil {
				t.Fatal(err)
			}
			left += last["left_out"].(float64)
		}
		if lines != row.lines || lines > 0 && (last["left_out"] != row.last || float64(lines)+left+float64(l.ring(accounts.Reason(spillway.ReasonQueueFull), spillway.Sheddable).lines.LeftOut()) != 1001) {
			t.Errorf("%v: %d lines, %v left out, the last: %v", row.rate, lines, left, last)
		}
		if lines == 0 {
			continue
		}
		for field, want := range map[string]any{
			"msg": "request rejected", "reason": "queue_full", "policy": "shed", "listener": "main", "cluster": "web", "route": "/api/",
			"path": "/api/orders/", "customer": "acme", "caller": "192.0.2.1", "class": "SHEDDABLE", "request_id": "id-1",
			"level": "WARN", "measured": 9.0, "limit": 10.0, "unit": "requests",
		} {
			if last[field] != want {
				t.Errorf("%s is %v, want %v", field, last[field], want)
			}
		}
		if !strings.HasSuffix(fmt.Sprint(last["runbook"]), "runbook.md#queue_full") || last["do"] == "" || !strings.Contains(fmt.Sprint(last["settings"]), "clusters[web].") || strings.Contains(fmt.Sprint(last["settings"]), "mongo") {
			t.Errorf("what to do: %v, %v, %v", last["do"], last["settings"], last["runbook"])
		}
	}
}

// TestAFloodHidesNothing: neither rejections for another reason, nor earlier ones for the same.
func TestAFloodHidesNothing(t *testing.T) {
	l := New(nil)
	l.Observe(rejection(0, spillway.ReasonQuota, "rare"))
	for i := range 20_000 {
		l.Observe(rejection(time.Duration(i)*100*time.Microsecond, spillway.ReasonQueueFull, "flood"))
	}
	if all, _ := l.Read(&Filter{Customer: "rare"}, 10); len(all) != 1 {
		t.Errorf("%d samples of the rare reason, want 1", len(all))
	}
	all, seen := l.Read(&Filter{Reason: "queue_full"}, 1000)
	if seen != 20_000 || len(all) != 2*perSecond {
		t.Errorf("%d samples of %d, want %d of 20000", len(all), seen, 2*perSecond)
	}
	if oldest := all[len(all)-1].Time; !oldest.Equal(start) {
		t.Errorf("the oldest sample is of %v, want the first one of the flood", oldest)
	}
	for i := range 1000 {
		l.Observe(rejection(time.Duration(i)*time.Second, spillway.ReasonQueueFull, "slow"))
	}
	if all, _ := l.Read(&Filter{Reason: "queue_full"}, 1000); len(all) != kept || !all[0].Time.Equal(start.Add(999*time.Second)) {
		t.Errorf("%d samples, the latest of %v", len(all), all[0].Time)
	}
}

// TestAFloodHidesNoLine: a flood for one reason leaves the lines of other reasons alone.
func TestAFloodHidesNoLine(t *testing.T) {
	var log bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 10_000 {
		at := time.Duration(i) * time.Millisecond
		l.Observe(rejection(at, spillway.ReasonQueueFull, "flood"))
		if i%2000 == 1999 { // every other second, in the middle of the flood
			l.Observe(rejection(at, spillway.ReasonQuota, "rare"))
		}
	}
	for reason, want := range map[string]int{"queue_full": 10, "quota": 5} {
		if got := strings.Count(log.String(), " reason="+reason+" "); got != want {
			t.Errorf("%d lines for %s, want %d", got, reason, want)
		}
	}
	if strings.Count(log.String(), "left_out=0") != 6 { // of each rare one, and the first of the flood
		t.Errorf("lines left out:\n%s", log.String())
	}
}

func TestSearch(t *testing.T) {
	l := New(nil)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	l.Observe(about(rejection(time.Second, spillway.ReasonQueueFull, "acme"), described{"/api/a", "id-a", trace, "192.0.2.1"}))
	l.Observe(about(rejection(2*time.Second, spillway.ReasonQuota, "other"), described{"/api/b/c/d", "id-b", "", "192.0.2.2"}))
	e := rejection(3*time.Second, spillway.ReasonQuota, "other")
	e.Mode, e.Call.Criticality, e.Call.Key = spillway.ModeObserve, spillway.Critical, "db"
	l.Observe(e)
	for query, want := range map[string]int{
		"": 3, "reason=quota": 2, "reason=quota&mode=observe": 1, "policy=shed": 3, "policy=quota": 0, "class=critical": 1,
		"listener=main": 2, "cluster=web": 2, "cluster=db": 1, "route=/api/": 2, "route=/": 1, "path=/api/": 2, "path=/api/b": 1, "path=/api/b/c/d": 1, "path=/x": 0,
		"customer=acme": 1, "caller=192.0.2.2": 1, "request_id=id-b": 1, "request_id=id": 0, "trace_id=" + trace: 1,
		"trace_id=00-" + trace + "-00f067aa0ba902b7-01": 1, "since=2026-01-02T03:04:07Z": 2, "until=2026-01-02T03:04:06Z": 1,
		"since=5m": 0, "until=1h30m": 3,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := newFilter(values)
		if err != nil {
			t.Fatal(err)
		}
		if all, _ := l.Read(f, 10); len(all) != want {
			t.Errorf("%q: %d decisions, want %d: %+v", query, len(all), want, all)
		}
	}
	for _, query := range []string{"costumer=acme", "since=yesterday", "until=1", "since=-5m"} {
		values, _ := url.ParseQuery(query)
		if _, err := newFilter(values); err == nil {
			t.Errorf("%q: no error", query)
		}
	}
	if d, ok := l.Last("shed", "quota", "enforce"); !ok || d.RequestID != "id-b" || *d.Measured != 9 || d.Limit != 10 || d.Attempt != 1 {
		t.Errorf("the last: %+v", d)
	}
	if _, ok := l.Last("shed", "throttle", "enforce"); ok {
		t.Error("a sample of a reason that never was")
	}
}

func TestTop(t *testing.T) {
	l := New(nil)
	for i := range 10_000 {
		customer := fmt.Sprint("stranger ", i)
		if i%4 == 0 {
			customer = "heavy"
		}
		l.Observe(about(rejection(time.Duration(i)*time.Millisecond, spillway.ReasonQuota, customer), described{caller: fmt.Sprint("192.0.2.", i%3)}))
	}
	top := l.Top(start.Add(10*time.Second), 5)
	first := top.Customers.Rows[0]
	if want := (Row{"heavy", "quota", "SHEDDABLE", "enforce", first.Count}); first != want || first.Count > 2500 || first.Count+top.Customers.Error < 2500 || top.Customers.Error > 100 {
		t.Errorf("the top customer: %+v, each count at most %d too low", first, top.Customers.Error)
	}
	if top.Customers.Error == 0 || len(top.Customers.Rows) != 5 {
		t.Errorf("%+v", top.Customers)
	}
	sum := top.Customers.Others
	for _, r := range top.Customers.Rows {
		sum += r.Count
	}
	if sum != 10_000 {
		t.Errorf("rows and others are %d, want all 10000", sum)
	}
	if len(top.Callers.Rows) != 3 || top.Callers.Error != 0 || top.Callers.Others != 0 || top.Callers.Rows[0].Count != 3334 {
		t.Errorf("the callers: %+v", top.Callers)
	}
	if len(top.Routes.Rows) != 1 || top.Routes.Rows[0].Name != "web: /api/" || top.Routes.Rows[0].Count != 10_000 {
		t.Errorf("the routes: %+v", top.Routes)
	}
	// Rejections of the last 5 to 10 minutes count; a clock that steps back does no harm.
	for _, row := range []struct {
		at   time.Duration
		want int
	}{{6 * time.Minute, 1}, {time.Hour, 0}} {
		if top := l.Top(start.Add(row.at), 5); len(top.Routes.Rows) != row.want {
			t.Errorf("after %v: %+v", row.at, top.Routes)
		}
	}
	l.Observe(rejection(-time.Hour, spillway.ReasonQuota, "late"))
	if top := l.Top(start.Add(-time.Hour), 5); len(top.Customers.Rows) != 1 {
		t.Errorf("after a step back: %+v", top.Customers)
	}
}

// TestTags: each combination of a reason, a class and a mode comes back as it was.
func TestTags(t *testing.T) {
	for reason := range accounts.Reason(accounts.Reasons) {
		for class := spillway.Sheddable; class <= spillway.CriticalPlus; class++ {
			for _, mode := range []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve} {
				got := rowOf(frequent.Count{Key: "k", Tag: tagOf(reason, class, mode)})
				if want := (Row{Name: "k", Reason: reason.String(), Criticality: class.String(), Mode: mode.String()}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			}
		}
	}
}

func TestValuesOfClients(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "": "", "a\nb\x00c": "a\uFFFDb\uFFFDc", "\xff\xfe": "\uFFFD\uFFFD", "ü": "ü", "\u202e": "\uFFFD", "a b": "a b",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for path, want := range map[string]string{
		"/": "/", "": "", "/a": "/a", "/a/": "/a/", "/a/b": "/a/b", "/a/b/c/d": "/a/b/", "//a//b": "//a/", "a": "a",
	} {
		if got := PathPrefix(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for parent, ok := range map[string]bool{
		good: true, "01" + good[2:] + "-more": true, "01" + good[2:]: true,
		good + "-more": false, "ff" + good[2:]: false, good[:54]: false, "00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false, strings.ToUpper(good): false, "": false, "01" + good[2:] + "more": false,
	} {
		if got := TraceID(http.Header{"Traceparent": {parent}}); (got != "") != ok {
			t.Errorf("%s: %q", parent, got)
		}
	}
	if got := TraceID(http.Header{"Traceparent": {good, good}}); got != "" {
		t.Errorf("two headers: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\xff\n" + strings.Repeat("é", 100))
	f.Fuzz(func(t *testing.T, text string) {
		got := Clean(text)
		if len(got) > MaxValue || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q becomes %q", text, got)
		}
		if Clean(got) != got {
			t.Errorf("%q becomes %q, and then %q", text, got, Clean(got))
		}
	})
}

// TestHostileValues: for arbitrary values from clients and policies, everything that is kept
// is bounded and valid JSON.
func TestHostileValues(t *testing.T) {
	var log bytes.Buffer
	l := New(slog.New(slog.NewJSONHandler(&log, nil)))
	huge := strings.Repeat("\x1b[2J\n\xff", 1<<16)
	e := rejection(0, 200, huge)
	e.Reason, e.Err, e.Call.Key = spillway.ReasonQuota, errors.New(huge), "web"
	e.Level, e.Limit = math.NaN(), math.Inf(1)
	l.Observe(about(e, described{"/" + huge, huge, "", "192.0.2.1"}))
	all, _ := l.Read(&Filter{Customer: huge}, 1)
	text, err := json.Marshal(all)
	if len(all) != 1 || err != nil || len(text) > 3000 || log.Len() > 3000 {
		t.Errorf("%v: %d bytes kept, %d bytes logged", err, len(text), log.Len())
	}
	e = rejection(0, spillway.ReasonQueueFull, huge)
	e.Level, e.Limit = math.NaN(), math.Inf(1)
	l.Observe(about(e, described{"/" + huge, huge, "", "192.0.2.1"}))
	if all, _ := l.Read(&Filter{Reason: "queue_full"}, 1); len(all) != 1 || *all[0].Measured != 0 || all[0].Limit != 0 {
		t.Errorf("a level that is no number: %+v", all)
	} else if _, err := json.Marshal(all); err != nil {
		t.Error(err)
	}
	if bytes.ContainsAny(bytes.Replace(log.Bytes()[:log.Len()-1], []byte("\n"), nil, 1), "\x1b\n") {
		t.Errorf("control characters in the log: %q", log.String())
	}
	if name := l.Top(start, 1).Customers.Rows[0].Name; strings.ContainsAny(name, "\x1b\n") || len(name) > MaxValue {
		t.Errorf("the top customer is %q", name)
	}
}

// TestObserveByMany has many goroutines write and read at once.
func TestObserveByMany(t *testing.T) {
	l := New(nil)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				l.Observe(rejection(time.Duration(i)*time.Millisecond, spillway.Reason(g), "acme"))
				if i%100 == 0 {
					l.Read(&Filter{}, 10)
					l.Top(start, 10)
				}
			}
		})
	}
	all.Wait()
	if _, seen := l.Read(&Filter{}, 1); seen != 4000 {
		t.Errorf("%d rejections, want 4000", seen)
	}
}

// TestNoMemory: a rejection without a sample and a line needs none.
func TestNoMemory(t *testing.T) {
	l := New(nil)
	e := rejection(0, spillway.ReasonQuota, "acme")
	for range 1000 {
		l.Observe(e)
	}
	if n := testing.AllocsPerRun(100, func() { l.Observe(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
