package main

import (
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// sample is a Result with everything that a table can show.
func sample() *Result {
	step := func(load, ratio float64, offered, answered, rejected int, p50, p99 *float64) Step {
		return Step{
			Load: load, GoodputRatio: ratio, P50MS: p50, P99MS: p99,
			Offered: offered, Good: answered, Rejected: rejected, Lost: offered - answered - rejected,
		}
	}
	return &Result{Rows: []Row{
		{
			Backend: "cpu", Wire: "http1", Procs: 1, Front: "none", CapacityRPS: 640, DeadlineMS: 100,
			Steps: []Step{
				step(0.9, 0.897, 1000, 1000, 0, new(7.44), new(38.2)),
				step(10, 0, 10000, 0, 0, nil, nil),
			},
			ReactionWithin: 2.5, RecoveryWithin: 1.5, CPUPressure: new(0.04),
		},
		{
			Backend: "cpu", Wire: "http1", Procs: 1, Front: "aegis", CapacityRPS: 632.6, DeadlineMS: 100,
			Steps:     []Step{step(0.9, 0.85, 1000, 950, 30, new(7.1), nil)},
			ReactionS: new(15.8), ReactionWithin: 18, RecoveryS: new(0.25), RecoveryWithin: 1.5,
			WholeMachine: "only root may mount", LatenessP99MS: 5.5, CPUPressure: new(0.3),
		},
		{
			Backend: "blocking", Wire: "tls-http2", SlowAcceptMS: 2, Procs: 2, Front: "spillway", CapacityRPS: 390, DeadlineMS: 250,
			Steps:     []Step{step(10, 0.991, 10000, 991, 9000, new(9.94), new(45.0))},
			ReactionS: new(0.0), ReactionWithin: 2.5, RecoveryS: new(0.0), RecoveryWithin: 1.5,
		},
	}}
}

func TestTable(t *testing.T) {
	var got strings.Builder
	if err := sample().writeTables(&got); err != nil {
		t.Fatal(err)
	}
	const want = legend + `
**cpu**, HTTP/1.1: a call burns 1.5ms of one CPU; one processor, C = 633 to 640/s, deadline 100 ms

|       | 0.9 C              | 10 C             | reaction | recovery |
| ----- | ------------------ | ---------------- | -------- | -------- |
| none  | 89.7 (7.4/38; 0/0) | 0.0 (-/-; 0/100) | > 2.5 s  | > 1.5 s  |
| aegis | 85.0 (7.1/-; 3/2)  |                  | 16 s     | 0.25 s   |

aegis read the CPU use of the whole machine, callers included: there is no container (only root may mount).

aegis: the p99 of the sends was 5.5 ms late.

aegis: threads of this machine lacked a processor for 30 % of the time.

**blocking**, HTTP/2 over TLS 1.3, 2 ms before each connection is accepted: a call waits for one of 8 slots and holds it for 20ms; 2 processors, C = 390/s, deadline 250 ms

|          | 10 C               | reaction | recovery |
| -------- | ------------------ | -------- | -------- |
| spillway | 99.1 (9.9/45; 90/0) | 0 s      | 0 s      |
`
	if fields(got.String()) != fields(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	aligned(t, got.String())
}

// fields leaves out how wide the columns are.
func fields(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "-", " ")), " ")
}

// aligned fails t unless the columns of each table are as wide in all its lines.
func aligned(t *testing.T, text string) {
	t.Helper()
	bars := ""
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			bars = ""
			continue
		}
		now := strings.Map(func(r rune) rune {
			if r == '|' || r == '\n' {
				return r
			}
			return '.'
		}, line)
		if bars != "" && now != bars {
			t.Errorf("not aligned: %s", line)
		}
		bars = now
	}
}

// The rows of a table stand in the order of the fronts, whatever that of the runs.
func TestRowsAreInOrder(t *testing.T) {
	r := Result{Rows: []Row{{Front: "spillway"}, {Front: "static"}, {Front: "none"}, {Front: "go-zero"}}}
	var got []string
	for _, row := range r.tables()[0].rows {
		got = append(got, row.Front)
	}
	if strings.Join(got, " ") != "none static go-zero spillway" {
		t.Errorf("%v", got)
	}
}

// The table of classes has the overloads of the fronts that read the class of a call.
func TestClasses(t *testing.T) {
	x := trial{capacity: 100, load: []stretch{{load: 0.5, length: 10 * time.Second}, {load: 2, length: 100 * time.Second}}}
	calls := each(110*time.Second, func(time.Duration) outcome { return good })
	for i := range calls {
		calls[i].class = []spillway.Criticality{spillway.CriticalPlus, spillway.Critical, spillway.Sheddable, spillway.Sheddable}[i%4]
		if i%4 == 1 && i%16 != 1 {
			calls[i].outcome = rejected
		}
	}
	steps := x.summarize(calls, nil).steps
	r := Result{Rows: []Row{
		{Backend: kindCPU, Wire: "grpc", Front: frontSpillway, Steps: steps},
		{Backend: kindCPU, Wire: "grpc", Front: frontNone, Steps: steps},
	}}
	var got strings.Builder
	r.writeClasses(&got)
	want := `
| wire | backend | front | load | CRITICAL_PLUS | CRITICAL | SHEDDABLE_PLUS | SHEDDABLE |
| --- | --- | --- | --- | --- | --- | --- | --- |
| grpc | cpu | spillway | 2 C | 100.0 (5.0/5.0) | 25.0 (5.0/ ) | 0.0 ( / ) | 100.0 (5.0/5.0) |
`
	_, rows, _ := strings.Cut(got.String(), "choose --step=5s.\n")
	if fields(rows) != fields(want) {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
	aligned(t, got.String())
	got.Reset()
	(&Result{Rows: r.Rows[1:]}).writeClasses(&got)
	if got.Len() > 0 {
		t.Errorf("without a front that reads the class: %q", got.String())
	}
}

// The table of costs has what is known of each row, and the line that the front cannot exceed.
func TestCosts(t *testing.T) {
	row := func(wire, front string, us, ratio float64) Row {
		return Row{Backend: kindCPU, Wire: wire, Front: front, CallUS: 1500, RejectionUS: &us, Steps: []Step{{Load: 2}, {Load: 10, GoodputRatio: ratio}}}
	}
	r := Result{Rows: []Row{
		row("tls-http1", frontNone, 25, 0), row("tls-http1", frontSpillway, 30, 0.8), row("http1", frontNone, 15, 0),
		row("http1-new", frontSpillway, 300, 0.01), {Front: "static", Wire: "http1"},
	}}
	var got strings.Builder
	r.writeCosts(&got)
	want := `
| wire | front | rejection µs | record layer µs | call µs | load | line % | measured % | apart |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| http1 | none | 15.0 | | 1500 | | | | |
| tls-http1 | none | 25.0 | 10.0 | 1500 | | | | |
| tls-http1 | spillway | 30.0 | 10.0 | 1500 | 10 C | 82.0 | 80.0 | -2.0 |
| http1-new | spillway | 300.0 | | 1500 | 10 C | 0.0 | 1.0 | +1.0 |
`
	_, rows, _ := strings.Cut(got.String(), "is lost.\n")
	if fields(rows) != fields(want) {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
	aligned(t, got.String())
	got.Reset()
	(&Result{Rows: []Row{{Front: "static"}}}).writeCosts(&got)
	if got.Len() > 0 {
		t.Errorf("without rejections: %q", got.String())
	}
}
