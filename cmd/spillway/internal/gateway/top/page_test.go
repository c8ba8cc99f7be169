package top

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

// fleetOf returns the page of fakes after ten seconds, each with its number as its address, and of processes with problems.
func fleetOf(t testing.TB, fakes []*fake, problems ...*query.Problem) *Page {
	t.Helper()
	f := New(Config{Window: 10 * time.Second})
	defer f.Close()
	add := func(address string) *member {
		target, err := query.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		m := &member{target: target, history: history{window: 10 * time.Second}, fresh: noon}
		f.members[target] = m
		return m
	}
	for i, x := range fakes {
		m := add(fmt.Sprintf("10.0.%d.%d:8001", i/250, i%250+1))
		for _, at := range []int{0, 10} {
			m.hear(second(float64(at)), decoded(t, x.at(at)), nil)
		}
	}
	for i, p := range problems {
		add(fmt.Sprintf("10.1.0.%d:8001", i+1)).hear(second(10), nil, p)
	}
	return f.Page(second(10))
}

// An incident is a fleet with a name.
type incident struct {
	name string
	page *Page
}

func incidents(t testing.TB) []incident {
	t.Helper()
	rejected := &query.Problem{Kind: query.Unreachable, Text: "connection refused", Do: "Start it, or correct the address."}
	unauthorized := &query.Problem{Kind: query.Unauthorized, Text: "it needs a token", Do: "Give its token with --token-file."}
	eight := func(n int) (all []*fake) {
		for i := range n {
			x := newFake(t, fmt.Sprintf("checkout-7d9f8b6c5-x2x9%c", 'a'+i), 1000+10*i, 3000-300*i)
			if x.rejected < 1500 {
				x.rejected, x.customers, x.verdict = 0, nil, calm
			}
			all = append(all, x)
		}
		return all
	}
	late := eight(3)
	late[1].lost = 900
	late[1].verdict = map[string]any{"level": "bad", "kind": "answers_late", "headline": "Answers come too late."}
	late[2].started = noon.Add(-5 * time.Second)
	many := make([]*fake, 0, 1000)
	for i := range 1000 {
		many = append(many, &fake{name: fmt.Sprintf("p%d", i), started: noon.Add(-time.Hour), served: 1234, verdict: calm, state: map[string]any{}})
	}
	many[617].rejected, many[617].verdict = 1_234_567, map[string]any{"level": "warn", "kind": "overloaded", "headline": "Overloaded, and protected."}
	quiet := eight(2)
	for _, x := range quiet {
		*x = fake{name: x.name, started: x.started, verdict: map[string]any{"level": "idle", "headline": "No requests."}, state: x.state}
	}
	return []incident{
		{"overloaded", fleetOf(t, eight(8))},
		{"problems", fleetOf(t, late, rejected, unauthorized, rejected)},
		{"calm", fleetOf(t, eight(8)[6:])},
		{"silent", fleetOf(t, nil, unauthorized, rejected)},
		{"one", fleetOf(t, eight(1))},
		{"thousand", fleetOf(t, many)},
		{"idle", fleetOf(t, quiet)},
		{"nobody", fleetOf(t, nil)},
	}
}

func written(t testing.TB, p *Page, s Screen) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPages compares what is shown of incidents with recorded pages.
func TestPages(t *testing.T) {
	for _, x := range incidents(t) {
		for _, s := range []Screen{{Width: 80, Height: 24}, {Width: 120, Height: 40}, {Width: 200, Height: 50}} {
			golden(t, fmt.Sprintf("%s-%d.txt", x.name, s.Width), written(t, x.page, s)+"\n")
		}
	}
}

// TestWidths: on no screen a line is longer than the screen, a number is cut, or the answer or one of eight processes is
// missing.
func TestWidths(t *testing.T) {
	number := regexp.MustCompile(`[0-9][0-9.,]*[0-9]|[0-9]`)
	for _, x := range incidents(t) {
		whole := number.FindAllString(written(t, x.page, Screen{Width: 1000}), -1)
		for wide := 60; wide <= 220; wide += 1 + wide/120*6 {
			s := Screen{Width: wide, Height: 24}
			got := written(t, x.page, s)
			lines := strings.Split(got, "\n")
			if len(lines) > s.Height {
				t.Errorf("%s: %d lines at %d columns", x.name, len(lines), wide)
			}
			for _, line := range lines {
				if width(line) > wide {
					t.Errorf("%s: at %d columns a line has %d: %s", x.name, wide, width(line), line)
				}
			}
			rest := strings.NewReplacer("and 988 more", "").Replace(got)
			for _, n := range number.FindAllString(rest, -1) {
				if !slices.Contains(whole, n) && !strings.Contains(got, "and "+n+" more") {
					t.Errorf("%s: at %d columns there is the number %s, which is none:\n%s", x.name, wide, n, got)
				}
			}
			if x.page.Asked > 8 || wide < 80 {
				continue
			}
			for i := range x.page.Processes {
				p := &x.page.Processes[i]
				tail := p.Address
				if p.Name != "" {
					tail = p.Name[len(p.Name)-5:]
				}
				if !strings.Contains(got, tail) {
					t.Errorf("%s: %s is not shown at %d columns:\n%s", x.name, tail, wide, got)
				}
			}
		}
	}
}

// TestSums: the numbers of a page are those of its processes, in the order of harm.
func TestSums(t *testing.T) {
	p := incidents(t)[0].page
	var offered, rejected float64
	for i := range p.Processes {
		offered += p.Processes[i].Offered
		rejected += p.Processes[i].Rejected.Sum()
		if i > 0 && p.Processes[i].bad() > p.Processes[i-1].bad() {
			t.Errorf("process %d is worse than the one before", i)
		}
	}
	const served, out = 8*1000 + 10*28, 3000 + 2700 + 2400 + 2100 + 1800 + 1500
	if math.Abs(offered-p.Offered) > 0.01 || math.Abs(p.Offered-served-out) > 0.01 || math.Abs(p.Served-served) > 0.01 || p.Rejected[0] != rejected {
		t.Errorf("%v offered, %v served, %v rejected; the processes have %v and %v", p.Offered, p.Served, p.Rejected, offered, rejected)
	}
	if got := p.Reasons[0]; got.Reason != "higher_class" || math.Abs(got.Rate.Sum()-out) > 0.01 || got.Do == "" {
		t.Errorf("reason %+v", got)
	}
	acme, beta := p.Customers.Names[0], p.Customers.Names[1]
	if acme.Name != "acme" || math.Abs(acme.AtLeast-out/2) > 0.01 || acme.Processes != 6 || beta.Name != "beta" || math.Abs(p.Customers.Others-out/4) > 0.01 {
		t.Errorf("customers %+v", p.Customers)
	}
	if p.Callers.Others != p.Rejected.Sum() {
		t.Errorf("callers %+v", p.Callers)
	}
}

// TestJSON: a page with hostile names is JSON on one line, and has no character that moves a cursor.
func TestJSON(t *testing.T) {
	evil := newFake(t, "\x1b[2J\u202e\nevil", math.MaxInt32, 1<<40)
	evil.customers = map[string]int{"acme": 1 << 50}
	evil.verdict = map[string]any{"level": "\x1b]0;", "kind": "\u009b", "headline": strings.Repeat("\x1b[31m", 1000)}
	p := fleetOf(t, []*fake{evil, newFake(t, "p2", 1, 1)})
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Page
	if err := json.Unmarshal(text, &again); err != nil || len(again.Processes) != 2 {
		t.Errorf("%v: %s", err, text)
	}
	for name, got := range map[string]string{"JSON": string(text), "text": written(t, p, Screen{Width: 120})} {
		if strings.ContainsAny(strings.ReplaceAll(got, "\n", ""), "\x1b\u202e\u009b\a") || name == "JSON" && strings.Contains(got, "\n") {
			t.Errorf("%s has an escape: %q", name, got)
		}
	}
}

// TestObserve: while gates observe, the page says what they would reject, and what to do.
func TestObserve(t *testing.T) {
	x := newFake(t, "p1", 1000, 0)
	x.verdict = map[string]any{"level": "warn", "kind": "", "headline": "Overloaded, and not protected."}
	first, last := x.at(0), x.at(10)
	last["counts"].(map[string]any)["would_reject"] = []int{4000, 0, 0, 0}
	m := &member{history: history{window: 10 * time.Second}, fresh: noon}
	m.hear(noon, decoded(t, first), nil)
	m.hear(second(10), decoded(t, last), nil)
	p := newPage(second(10), []Process{m.process(second(10))}, nil, nil)
	if v := p.Verdict; !strings.Contains(v.Who, "Would be rejected: SHEDDABLE 400/s") || !strings.Contains(v.Do, "mode: enforce") {
		t.Errorf("%+v", v)
	}
	if got := written(t, p, Screen{Width: 120}); !strings.Contains(got, "(400/s)") {
		t.Errorf("the page is\n%s", got)
	}
}
