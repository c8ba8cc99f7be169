package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// Write writes the explanation as text.
func (e *Explanation) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(t, strict.Printable(strings.Join(cells, "\t"))) }
	line(e.Request)
	l := e.Listener
	line("\nlistener: " + l.Name + ", " + l.Boundary + " boundary" + with(", client ", l.Client))
	line("  " + l.Trust)
	line("\nroute")
	for _, r := range e.Routes {
		line("  "+r.Route, map[bool]string{true: "MATCHES", false: "no"}[r.Matches], r.Why)
	}
	if e.Call == nil {
		none := "  no route matches: the answer is 404 (gRPC: UNIMPLEMENTED)"
		if slices.ContainsFunc(e.Routes, func(r RouteFacts) bool { return r.Why == ambiguous }) {
			none = "  no route is used: the answer is 400 (gRPC: INVALID_ARGUMENT)"
		}
		line(none)
		return t.Flush()
	}
	line("\nheaders")
	for _, h := range e.Headers {
		believed := map[bool]string{true: "counts", false: "does not count"}[h.Believed]
		line("  "+h.Name, believed, with("value ", h.Says)+with(map[bool]string{true: "; "}[h.Says != ""], h.Why), "forwarded: "+cmp.Or(h.Sent, "no"))
	}
	if len(e.Headers) == 0 {
		line("  no header changes the class, the attempt, the deadline or the customer")
	}
	writeCall(line, e.Call)
	line("\ngates, in order")
	for _, g := range e.Gates {
		line("  "+g.Gate, g.Mode, g.Does, "("+g.Limits+")")
	}
	writeCaps(line, e)
	line("\nwhen gates reject")
	for _, g := range e.Gates {
		if g.Mode != "off" && g.Rejects != "" {
			line("  "+g.Gate, g.Rejects)
		}
	}
	writeRest(line, e)
	return t.Flush()
}

// writeCaps writes the caps that are lower than configured, if there are any.
func writeCaps(line func(...string), e *Explanation) {
	if len(e.Caps) > 0 {
		line(fmt.Sprintf("\ncaps lowered by the limit on open files, %d (ulimit -n, or --open-files)", e.Files))
	}
	for _, x := range e.Caps {
		configured := "no cap"
		if x.Configured > 0 {
			configured = fmt.Sprint(x.Configured)
		}
		line("  "+x.Field, "configured "+configured, fmt.Sprintf("in force %d", x.InForce))
	}
}

func writeCall(line func(...string), c *CallFacts) {
	line("\nclassified as")
	line("  criticality", c.Criticality+", decided by "+c.DecidedBy+" (precedence: "+c.Precedence+")")
	level := "drawn at random for each request"
	if c.Level > 0 {
		level = fmt.Sprintf("%d, after %d served calls of the task", c.Level, c.Progress)
	}
	line("  level", level)
	customer := c.CustomerDecidedBy // which says why there is none
	if c.Customer != "" {
		customer = c.Customer + " (" + customer + ")"
	}
	line("  customer", customer)
	line("  attempt", fmt.Sprint(c.Attempt))
	line("  deadline", cmp.Or(c.Deadline, "none"))
	sharers := "for the routes with this key"
	if c.LimitKey == c.Cluster {
		sharers = "for all routes to the cluster without a key"
	}
	line("  waits for", c.LimitKey+" (one limit on requests in flight, "+sharers+")")
	if c.Exempt {
		line("  exempt", "skips the rate limit, the quota and the shedder")
	}
}

func writeRest(line func(...string), e *Explanation) {
	line("\nretries: " + e.Retries.Mode + " (" + e.Retries.Limits + ")")
	for part := range strings.SplitSeq(e.Retries.Why, "; ") {
		line("  " + part)
	}
	for _, c := range e.Retries.Cases {
		line("  after: "+c.When, map[bool]string{true: "retried", false: "not retried"}[c.Again])
	}
	g := e.Target
	scheme := "without TLS"
	if g.TLS {
		scheme = "over TLS"
	}
	line("\nsent to: cluster " + g.Cluster + ", " + g.Protocol + ", " + scheme)
	line("  endpoints: " + strings.Join(g.Endpoints, ", "))
	for _, h := range g.Sent {
		line("  header " + h)
	}
	line(fmt.Sprintf("\nanswer: %d if the endpoint answers 200", e.Status))
}

// with returns text after a prefix, nothing if absent.
func with(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
