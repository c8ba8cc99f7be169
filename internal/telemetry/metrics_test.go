package telemetry

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the table into docs/metrics.md")

// TestTable holds docs/metrics.md to the table of metrics.
func TestTable(t *testing.T) {
	const page, begin, end = "../../docs/metrics.md", "-update -->\n", "<!-- end of metrics -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has no place for the table", page)
	}
	want := head + begin + "\n" + markdown() + "\n" + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s differs from the table of metrics: run go test ./internal/telemetry -update", page)
	}
}

// labels lists the labels; those of the proxy alone say so.
func labels(m *Metric) string {
	all := slices.Clone(m.Labels)
	for _, label := range m.OfProxy() {
		all = append(all, label+" (proxy)")
	}
	return strings.Join(all, ", ")
}

func markdown() string {
	var b strings.Builder
	b.WriteString("| Prometheus | OpenTelemetry | type | unit | labels | in | meaning |\n|---|---|---|---|---|---|---|\n")
	for _, m := range Metrics {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | `%s` | %s | %s | %s |\n",
			m.Name, m.OTel(), m.Type, m.Unit, labels(m), m.Scope, m.Help)
	}
	return b.String()
}

// TestNames: the names and units fit the conventions of Prometheus and OpenTelemetry, so
// that an exporter makes the one of the other.
func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range Metrics {
		name := strings.ReplaceAll(m.OTel(), ".", "_")
		switch {
		case m.Type == Counter:
			name += "_total"
		case m.Unit == "s":
			name += "_seconds"
		case strings.HasSuffix(m.Name, "_ratio"): // of a gauge with the unit 1
			name += "_ratio"
			if m.Unit != "1" || m.Type != Gauge {
				t.Errorf("%s is a %s of %q", m.Name, m.Type, m.Unit)
			}
		}
		if m.Name != name || seen[name] || !strings.HasSuffix(m.Help, ".") && !strings.HasSuffix(m.Help, "0.") {
			t.Errorf("%+v: want the name %s, once", m, name)
		}
		seen[name] = true
	}
}

func TestLatencyHistogram(t *testing.T) {
	var h LatencyHistogram
	for d, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 1: 0, 1 << 20: 0, 1<<20 + 1: 1, time.Second: 10, 1 << 34: 14, 1<<34 + 1: 15, math.MaxInt64: 15,
	} {
		if got := h.Add(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
		if want < Buckets && d.Seconds() > Bounds[want] || want > 0 && d.Seconds() <= Bounds[want-1] {
			t.Errorf("%v is not in bucket %d by its bounds", d, want)
		}
	}
	cumulative, count, _ := h.Read()
	if count != 9 || cumulative[0] != 4 || cumulative[Buckets-1] != 7 {
		t.Errorf("%v of %d", cumulative, count)
	}
}
