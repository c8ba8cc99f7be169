package admin

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/human"
	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// text returns a handler that writes the last State as aligned text.
func (s *Server) text(write func(io.Writer, *State)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		textpage.Serve(w, http.StatusOK, textpage.Aligned(func(w io.Writer) { write(w, s.sampler.state.Load()) }))
	}
}

const limitsExplained = "KEY: what requests wait for: %s. " +
	"SHARED: one limit of all keys, in the row all.\n" +
	"UNKNOWN: requests end and none is answered, so that one at a time is let in until one is.\n" +
	"MOST: in the last minute. BOUND: a queue was found, or is being looked for.\n" +
	"BASELINE: latency without a queue, the least mean of the last 10 s, or as last measured while the limit holds requests back.\n" +
	"REJECTED: share of each class, from SHEDDABLE (S) to CRITICAL_PLUS (C+), mostly of its last 50 requests; without any it is halved every 50 ms.\n\n"

// limitText returns a limit as it is shown.
func limitText(limit float64, unanswered, shared bool) string {
	text := unknown
	if limit != 0 {
		text = fmt.Sprintf("%.4g", limit)
	}
	if unanswered {
		text += " unknown"
	}
	if shared {
		text += " shared"
	}
	return text
}

func writeLimits(w io.Writer, st *State) {
	textpage.Row(w, "LISTENER", "CLUSTER", "KEY", "IN FLIGHT", "MOST", "LIMIT", "BOUND", "BASELINE", "BUSY", "REJECTED S/S+/C/C+")
	for _, g := range st.Gates {
		textpage.Row(w, g.Listener, g.Cluster, "all", g.InFlight, g.Peak, limitText(g.Limit, g.Unknown, false),
			g.Bound, g.Baseline.Round(time.Microsecond), human.Percent(g.Busy),
			shares(g.RejectedRatio))
		for _, k := range g.Keys {
			textpage.Row(w, g.Listener, g.Cluster, k.Name, k.InFlight, unknown, limitText(k.Limit, k.Unknown, k.Shared),
				k.Bound, k.Baseline.Round(time.Microsecond), unknown, unknown)
		}
	}
	fmt.Fprintf(w, limitsExplained, st.whatKeysName())
	textpage.Row(w, "CLUSTER", "ATTEMPTS", "MAX", "THROTTLE S/S+/C/C+", "RETRIES", "BUDGET", "OF")
	for _, x := range st.Clusters {
		left, of := unknown, unknown
		if x.Budget != nil {
			left, of = strconv.FormatFloat(x.Budget.Left, 'f', 1, 64), strconv.FormatFloat(x.Budget.Capacity, 'f', 0, 64)
		}
		textpage.Row(w, x.Name, x.InFlight, orDash(float64(x.MaxInFlight)), shares(x.Throttle), x.Retries, left, of)
	}
	fmt.Fprintln(w)
	textpage.Row(w, "CLUSTER", "ENDPOINT", "IN FLIGHT", "PER SECOND", "ATTEMPTS", "STATE")
	for _, x := range st.Clusters {
		for _, e := range x.Endpoints {
			state := "up"
			if e.Down != "" {
				state = "down: " + e.Down
			}
			textpage.Row(w, x.Name, e.Address, e.InFlight, e.Rate, e.Attempts, state)
		}
	}
	writeTuned(w, st.Tuned)
}

func writeTuned(w io.Writer, all []Tuned) {
	for i, t := range all {
		if i == 0 {
			fmt.Fprintln(w)
			textpage.Row(w, "TUNED LIMIT", "VALUE", "LEAST", "MOST", "LAST MOVE")
		}
		last := unknown
		if len(t.Moves) > 0 {
			last = t.Moves[0].Time.Format(time.TimeOnly) + " " + t.Moves[0].Why
		}
		textpage.Row(w, t.Name, t.Value, t.Least, t.Most, last)
	}
}

func writeQueues(w io.Writer, st *State) {
	textpage.Row(w, "CLUSTER", "LISTENER", "WAIT FOR", "WAITING", "WAITED", "ON AVERAGE")
	for _, g := range st.Gates {
		textpage.Row(w, g.Cluster, g.Listener, "place or token", g.Waiting, g.Waits.Count, g.Waits.mean())
	}
	for _, x := range st.Clusters {
		if q := x.Queue; q != nil {
			textpage.Row(w, x.Name, "all", fmt.Sprintf("turn, %d of %d in flight", q.Busy, q.Places), q.Waiting, q.Waits.Count, q.Waits.mean())
		}
	}
}

func (w Waits) mean() time.Duration {
	if w.Count == 0 {
		return 0
	}
	return (w.Total / time.Duration(w.Count)).Round(time.Microsecond)
}

func orDash(v float64) any {
	if v == 0 {
		return unknown
	}
	return v
}

// shares writes a share of each class, the lowest first.
func shares(c [spillway.Criticalities]float64) string {
	var all []string
	for _, v := range c {
		all = append(all, strings.ReplaceAll(human.Percent(v), " ", ""))
	}
	return strings.Join(all, "/")
}

func (s *Server) serveConfig(w http.ResponseWriter, _ *http.Request) {
	override := s.sampler.state.Load().Override
	textpage.Serve(w, http.StatusOK, textpage.Aligned(func(w io.Writer) {
		textpage.Row(w, "FIELD", "VALUE", "ORIGIN")
		for _, x := range s.sampler.with.Program.Settings() {
			origin := "default"
			switch {
			case override != nil && override.Field == x.Field:
				origin = "API, " + override.Since.Format(time.TimeOnly) + "; the configuration says " + override.File
			case x.Given:
				origin = "given"
			}
			textpage.Row(w, x.Field, textpage.Tame(x.Value), origin)
		}
	}))
}
