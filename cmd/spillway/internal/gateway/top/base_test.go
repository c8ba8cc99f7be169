package top

import (
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// recorded is a State of a proxy in an overload, as it answered.
func recorded(t testing.TB) map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/overloaded.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// A fake is a process whose counts grow with time by the rates of a test.
type fake struct {
	name                   string
	started                time.Time
	served, rejected, lost int // per second; rejected are SHEDDABLE, all others are CRITICAL
	customers              map[string]int
	verdict                map[string]any
	mode                   string

	state map[string]any // recorded
}

// at returns the answer at some seconds after noon, of a list of customers that began at noon.
func (f *fake) at(seconds int) map[string]any {
	s := make(map[string]any)
	maps.Copy(s, f.state)
	s["name"], s["program"] = f.name, "proxy"
	s["time"], s["started"] = noon.Add(time.Duration(seconds)*time.Second), f.started
	if f.verdict != nil {
		s["verdict"] = f.verdict
	}
	if f.mode != "" {
		s["mode"] = f.mode
	}
	n := int(noon.Sub(f.started).Seconds()) + seconds
	zero := []int{0, 0, 0, 0}
	s["counts"] = map[string]any{
		"offered": n * (f.served + f.rejected + f.lost), "would_reject": zero,
		"ended": map[string]any{
			"served": []int{0, 0, n * f.served, 0}, "rejected": []int{n * f.rejected, 0, 0, 0}, "late": []int{0, 0, n * f.lost, 0},
			"failed": zero, "rejected_upstream": zero, "client_gone_waiting": zero, "client_gone_sent": zero,
		},
	}
	s["reasons"] = []any{map[string]any{
		"policy": "shed", "outcome": "rejected", "reason": "higher_class", "mode": "enforce", "words": "more critical requests were rejected recently",
		"do": "Add capacity, or have clients send less.", "total": []int{n * f.rejected, 0, 0, 0},
	}}
	rows := []any{}
	for _, name := range []string{"acme", "beta", "gamma"} {
		if rate := f.customers[name]; rate > 0 {
			rows = append(rows, map[string]any{"name": name, "reason": "higher_class", "class": "SHEDDABLE", "mode": "enforce", "count": rate * seconds})
		}
	}
	empty := map[string]any{"rows": []any{}, "others": 0}
	s["top"] = map[string]any{"customers": map[string]any{"rows": rows, "others": 0}, "callers": empty, "routes": empty}
	return s
}

// newFake returns a process that rejects what it cannot do.
func newFake(t testing.TB, name string, served, rejected int) *fake {
	return &fake{
		name: name, started: noon.Add(-time.Hour), served: served, rejected: rejected, state: recorded(t),
		customers: map[string]int{"acme": rejected / 2, "beta": rejected / 4},
	}
}

var calm = map[string]any{"level": "ok", "kind": "", "headline": "All is well.", "text": ""}

// decoded returns a State as it is read.
func decoded(t testing.TB, state map[string]any) *query.State {
	t.Helper()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	s, p := query.Decode(text)
	if p != nil {
		t.Fatal(p)
	}
	return s
}

// serve answers with what a func returns.
func serve(state func() map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(state())
	}
}
