package incidents

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// A script tells a Log once per second which conditions there are.
type script struct {
	log   *Log
	lines bytes.Buffer
	now   time.Time
}

func newScript() *script {
	s := &script{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.log = New(slog.New(slog.NewTextHandler(&s.lines, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	return s
}

// during returns the lines of some seconds with the same conditions.
func (s *script) during(seconds int, all ...Condition) string {
	s.lines.Reset()
	for range seconds {
		s.now = s.now.Add(time.Second)
		s.log.Tell(s.now, all)
	}
	return strings.TrimSpace(s.lines.String())
}

// TestLines: one line at the beginning, one at the end, none between, and none for what is short.
func TestLines(t *testing.T) {
	s := newScript()
	down := Condition{"endpoints_down", "shop", "1 of 2 endpoints of shop is down.", "10.0.0.1:80 (connection refused).", "Look.", "https://example.com/#x"}
	more := down
	more.Headline = "2 of 3 endpoints of shop are down."
	other := Condition{Kind: "endpoints_down", Subject: "web", Headline: "1 of 2 endpoints of web is down."}
	const began = `level=WARN msg="incident began" kind=endpoints_down subject=`
	for i, step := range []struct {
		seconds int
		all     []Condition
		want    string
	}{
		{5, nil, ""},
		{3, []Condition{down}, ""}, // too short
		{11, nil, ""},
		{20, []Condition{down}, began + `shop what="1 of 2 endpoints of shop is down." detail="10.0.0.1:80 (connection refused)." do=Look. runbook=https://example.com/#x`},
		{30, []Condition{more, other}, began + `web what="1 of 2 endpoints of web is down."`},
		{9, []Condition{other}, ""},          // not absent for long enough
		{40, []Condition{down, other}, ""},   // goes on
		{3600, []Condition{down, other}, ""}, // without a line each minute
		{9, []Condition{down}, ""},
		{2, []Condition{down}, `level=INFO msg="incident ended" kind=endpoints_down subject=web after=1h1m18s`},
		{20, nil, `level=INFO msg="incident ended" kind=endpoints_down subject=shop after=1h1m49s`},
	} {
		if got := s.during(step.seconds, step.all...); got != step.want {
			t.Errorf("step %d:\n%s\nwant\n%s", i, got, step.want)
		}
	}
	if len(s.log.known) != 0 {
		t.Errorf("%d conditions are kept after their end", len(s.log.known))
	}
}

// TestFlapping: whatever the rhythm in which a condition comes and goes, it has two lines per minute
// at most, a beginning and an end in turn.
func TestFlapping(t *testing.T) {
	race.SkipOneGoroutine(t)
	c := Condition{Kind: "k", Headline: "It is so."}
	for on := 1; on <= 40; on += 3 {
		for off := 1; off <= 40; off += 3 {
			s, lines := newScript(), ""
			const minutes = 30
			for end := s.now.Add(minutes * time.Minute); s.now.Before(end); {
				lines += s.during(on, c) + "\n" + s.during(off) + "\n"
			}
			last, n := "", 0
			for line := range strings.Lines(lines) {
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				what, _, _ := strings.Cut(line, " kind=")
				if n++; what == last {
					t.Fatalf("%d s on, %d s off: twice %s", on, off, what)
				}
				last = what
			}
			if n > 2*minutes+2 {
				t.Errorf("%d s on, %d s off: %d lines in %d minutes", on, off, n, minutes)
			}
		}
	}
}

// TestManyConditions: however many names there are, memory and lines are bounded.
func TestManyConditions(t *testing.T) {
	s, r := newScript(), rand.New(rand.NewPCG(1, 2))
	lines := 0
	for range 600 {
		var all []Condition
		for range 100 {
			all = append(all, Condition{Kind: "k", Subject: fmt.Sprint(r.IntN(1000))})
		}
		lines += strings.Count(s.during(1, all...), "incident")
		if len(s.log.known) > most {
			t.Fatalf("%d conditions are known", len(s.log.known))
		}
	}
	if lines > 2*most*11 {
		t.Errorf("%d lines in ten minutes", lines)
	}
}
