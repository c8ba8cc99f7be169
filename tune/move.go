package tune

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Move is a change of a limit, with its reason. If From equals To, it only reports that signals
// are missing, or that they are back. It has no pointers, so the receiver may keep it.
type Move struct {
	// Time is the time of the reading that led to the move.
	Time time.Time
	// From and To are the limit before and after.
	From, To float64
	// Rule is the rule that computed the move, or Fallback or Resume.
	Rule Rule
	// Signal is the signal with the greatest pressure, or the signal that is missing.
	Signal Signal
	// Value is the value of Signal; NaN if it is unknown.
	Value float64
	// Lasted is how long the reason of the move has lasted: a pressure that is too great or low
	// enough, a Signal that is unknown, or signals that are known again.
	Lasted time.Duration
	// Used is how much of the limit was used, averaged, in its unit; NaN if it is unknown.
	Used float64
	// Applied says that the limit is To now. It is false while the Tuner observes.
	Applied bool
}

// Reason returns the reason of the move as a sentence.
func (m Move) Reason() string {
	lasted := m.Lasted.Round(time.Millisecond)
	switch m.Rule {
	case Fallback:
		return fmt.Sprintf("%s is not known for %v: back to the configured limit", m.Signal.Name, lasted)
	case Resume:
		return fmt.Sprintf("all signals are known again for %v", lasted)
	default:
	}
	where := "below"
	if m.To < m.From {
		where = "above"
	}
	return fmt.Sprintf("%s is %s, for %v %s the target of %s%s",
		m.Signal.Name, m.Signal.text(m.Value), lasted, where, m.Signal.text(m.Signal.Target), m.usage())
}

func (m Move) usage() string {
	if math.IsNaN(m.Used) {
		return ""
	}
	return fmt.Sprintf("; %s of %s are used", short(m.Used), short(m.From))
}

// String returns the move and its reason: "100 to 80 (aimd): latency is 93 ms, …".
func (m Move) String() string {
	var b strings.Builder
	if m.From == m.To {
		fmt.Fprintf(&b, "stays at %s", short(m.To))
	} else {
		if !m.Applied {
			b.WriteString("would go from ")
		}
		fmt.Fprintf(&b, "%s to %s", short(m.From), short(m.To))
	}
	fmt.Fprintf(&b, " (%v): %s", m.Rule, m.Reason())
	return b.String()
}

func (s Signal) text(v float64) string {
	text := short(v)
	if s.Unit != "" {
		text += " " + s.Unit
	}
	return text
}

// short returns v with no more digits than anybody reads.
func short(v float64) string {
	if v >= 1000 && v < 1e12 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// describe returns the Move to a limit by a rule, because of the signal with the index cause.
func (t *Tuner) describe(r Rule, to float64, cause int) Move {
	m := Move{
		Time: t.clock.Time(t.at), From: t.limit, To: to, Rule: r,
		Signal: t.config.Signals[cause], Value: t.signals[cause].value,
		Lasted: t.at - t.trend.since, Used: t.used, Applied: t.config.Enforce,
	}
	switch r {
	case Fallback:
		m.Lasted = t.at - t.signals[cause].known
	case Resume:
		m.Lasted = t.at - t.seen
	default:
	}
	return m
}

// kept is how many moves are in [Stats].
const kept = 32

// A ring holds the latest moves.
type ring struct {
	all [kept]Move
	n   uint64 // ever
}

// keep puts m in the ring, and returns it.
func (t *Tuner) keep(m Move) Move {
	t.moves.all[t.moves.n%kept] = m
	t.moves.n++
	return m
}

// list returns the moves, oldest first.
func (r *ring) list() []Move {
	n := min(r.n, kept)
	list := make([]Move, 0, n)
	for i := r.n - n; i < r.n; i++ {
		list = append(list, r.all[i%kept])
	}
	return list
}
