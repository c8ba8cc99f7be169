package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/limits"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/golden"
)

// A program is one that uses the library, with two servers and the backends of a client.
type program struct {
	scene

	failing bool // its handlers
	calm    bool // nothing is rejected
}

func newProgram(mode spillway.Mode) *program {
	f := &fake{levels: Levels{
		Mode: mode,
		Gates: []Gate{
			{Listener: "shop", Limit: 24, InFlight: 22, Waiting: 7, Peak: 29, Adaptive: true, Baseline: 5 * time.Millisecond, Busy: 0.8, Keys: []limits.Key{
				{Name: "inventory", InFlight: 12, Limit: 12, Bound: true, Baseline: 9 * time.Millisecond},
			}},
			{Listener: "search-for-returning-customers", InFlight: 3, Peak: 3, Busy: 0.8},
		},
		Clusters: []Cluster{
			{Name: "inventory.shop.svc.cluster.local:8080", InFlight: 123456, MaxInFlight: 1e6, Throttle: [4]float64{0.5, 0.2, 0, 0}, Endpoints: []Endpoint{}},
			{Name: "payments", InFlight: 4, MaxInFlight: 1024, Budget: &Budget{Left: 60, Capacity: 100}, Endpoints: []Endpoint{}},
		},
	}}
	p := &program{scene: scene{proxy: f, now: noon, mode: mode}}
	p.Server = NewAt(Config{
		Name: "shop-7f9c", Version: "v1.2.3", Library: true, Collector: collector.NewLibrary(), Decisions: decisions.NewLibrary(nil, nil), Source: f,
	}, noon)
	p.sampler.with.Collector.Serves()
	return p
}

// overload lets seconds pass: 100 requests of each class come in each: all of the lowest are rejected, and half of the next.
func (p *program) overload(seconds int) {
	observe := p.sampler.with.Decisions.Before(p.sampler.with.Collector).Observe
	for range seconds {
		p.now = p.now.Add(time.Second)
		for i := range 400 {
			class := i % spillway.Criticalities
			call := spillway.Call{Key: "GET /cart", Customer: "acme", Criticality: spillway.Criticality(class) + spillway.Sheddable}
			e := spillway.Event{Time: p.now, Call: call, Outcome: spillway.OutcomeServed, Latency: 20 * time.Millisecond}
			if p.failing && i%3 == 0 {
				e.Outcome = spillway.OutcomeFailed
			}
			if !p.calm && (class == 0 || class == 1 && i%8 == 1) {
				r := rejected("shed", p.mode, errHigherClass)
				r.Time, r.Call = p.now, call
				observe(r)
				if p.mode == spillway.ModeEnforce {
					e = r
				}
			}
			p.sampler.with.Collector.ObserveEnd(e)
		}
		observe(spillway.Event{Time: p.now, Policy: "retry", Call: spillway.Call{Key: "payments", Attempt: 1}, Outcome: spillway.OutcomeServed, Latency: time.Millisecond})
		p.sampler.tick(p.now)
	}
}

// TestLibraryState compares the page of a program with a file.
func TestLibraryState(t *testing.T) {
	p := newProgram(spillway.ModeEnforce)
	p.overload(20)
	var st map[string]any
	text := get(t, p.Handler(), "/api/v1/state").Body.Bytes()
	if err := json.Unmarshal(text, &st); err != nil || st["program"] != "library" || st["name"] != "shop-7f9c" {
		t.Fatalf("%v, %s", err, text)
	}
	golden.Check(t, "library.json", string(text))
	for _, page := range []string{"limits", "accounts"} {
		golden.Check(t, "library-"+page+".txt", get(t, p.Handler(), "/debug/"+page).Body.String())
	}
}

// TestLibraryVerdicts: what the banner says, and what it says to do, in the words of the library.
func TestLibraryVerdicts(t *testing.T) {
	for name, row := range map[string]struct {
		mode     spillway.Mode
		failing  bool
		seconds  int
		change   func(*Levels)
		headline string
		do       string
	}{
		"quiet":      {headline: "No request yet."},
		"overloaded": {seconds: 12, headline: "Overloaded, and protected.", do: "Add capacity"},
		"observed":   {mode: spillway.ModeObserve, seconds: 12, headline: "Overloaded, and not protected.", do: "spillway.ModeEnforce"},
		"failing":    {failing: true, seconds: 12, headline: "Handlers fail.", do: "log of this program"},
		"silent": {seconds: 12, failing: true, change: func(l *Levels) {
			for i := range l.Gates {
				l.Gates[i].Unknown = true
			}
		}, headline: "No request to shop or search-for-returning-customers is answered, and the limit is unknown.", do: "concurrency.Config.MaxInFlight"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(row.mode)
			p.failing, p.calm = row.failing, row.failing
			for i := range p.proxy.levels.Gates {
				p.proxy.levels.Gates[i].InFlight *= min(row.seconds, 1)
			}
			if row.change != nil {
				row.change(&p.proxy.levels)
			}
			p.sampler.tick(p.now)
			p.overload(row.seconds)
			v := p.State().Verdict
			if v.Headline != row.headline || !strings.Contains(v.Do, row.do) || (v.Do == "") != (row.do == "") {
				t.Errorf("%+v", v)
			}
			for _, word := range []string{"upstream", "clusters[]", "routes[]"} {
				if text := v.Headline + v.Text + v.Do; strings.Contains(text, word) {
					t.Errorf("%q has %q", text, word)
				}
			}
		})
	}
}

// TestLibraryReasons: rejections name fields of Config structs, and lost requests have rows.
func TestLibraryReasons(t *testing.T) {
	p := newProgram(spillway.ModeEnforce)
	p.failing = true
	p.overload(3)
	limited := rejected("ratelimit", spillway.ModeEnforce, &spillway.RejectedError{Policy: "ratelimit", Reason: spillway.ReasonRateLimit, Limit: 3})
	limited.Time = p.now
	p.sampler.with.Decisions.Before(p.sampler.with.Collector).Observe(limited)
	p.overload(1)
	all := make(map[string]Reason)
	for _, r := range p.State().Reasons {
		all[r.Policy+" "+r.Reason] = r
	}
	if r := all["ratelimit rate_limit"]; len(r.Settings) != 1 || r.Settings[0].Name != "ingress.Config.RateLimit" || !strings.HasSuffix(r.Link, "#rate_limit") {
		t.Errorf("%+v", r)
	}
	if r := all[runbook.ByServer+" failed"]; r.Minute.sum() == 0 || r.Words != "a handler failed or panicked" || !strings.Contains(r.Do, "handlers") {
		t.Errorf("%+v", r)
	}
	if r := all["shed higher_class"]; r.Minute.sum() != 4*150 {
		t.Errorf("%+v", r)
	}
}

// TestLibraryChangesNothing: a program has no configuration to show or change, and no metrics.
func TestLibraryChangesNothing(t *testing.T) {
	h := newProgram(spillway.ModeEnforce).Handler()
	for _, path := range []string{"/api/v1/mode", "/api/v1/reload"} {
		if w := ask(t, h, http.MethodPost, path, "off"); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/metrics", "/debug/config"} {
		if w := get(t, h, path); w.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
}

// TestOffered: requests in progress are offered, and what waits for its client for a while takes none back.
func TestOffered(t *testing.T) {
	p := newProgram(spillway.ModeEnforce)
	for i, row := range []struct{ inFlight, want int }{{10, 10}, {4, 10}, {0, 10}, {30, 30}} {
		p.proxy.levels.Gates = []Gate{{Listener: "shop", InFlight: row.inFlight}}
		p.sampler.tick(p.now.Add(time.Duration(i+1) * time.Second))
		if got := p.State().Totals.Accounts.Offered; got != uint64(row.want) {
			t.Errorf("step %d: %d offered, want %d", i, got, row.want)
		}
	}
}
