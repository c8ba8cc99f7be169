package admin

import (
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/human"
	"github.com/seed90641741/spillway/internal/admin/kinds"
	"github.com/seed90641741/spillway/internal/admin/runbook"
)

// library is the Program of a State of a process that uses the library: its handlers answer the requests.
const library = "library"

// inProgress returns how many requests the gates have admitted or let wait.
func inProgress(l *Levels) (n int) {
	for i := range l.Gates {
		n += l.Gates[i].InFlight + l.Gates[i].Waiting
	}
	return n
}

// serverAccounts are the accounts of requests to servers of the library that are lost: no policy rejected them.
var serverAccounts = [...]struct {
	accounts.Account
	outcome, reason string
}{
	{accounts.Late, "late", "deadline"}, {accounts.Failed, "failed", "failed"}, {accounts.RejectedUpstream, "failed", "overloaded"},
	{accounts.GoneWaiting, "client gone", accounts.GoneWaiting.String()}, {accounts.GoneSent, "client gone", accounts.GoneSent.String()},
}

// serverReasons returns why requests to the servers of the library were lost.
func serverReasons(then, now *collector.Totals) (all []Reason) {
	if !now.Serves() {
		return nil // the events of the calls say it
	}
	for _, x := range serverAccounts {
		r := Reason{
			Policy: runbook.ByServer, Outcome: x.outcome, Reason: x.reason, Mode: spillway.ModeEnforce.String(), Words: kinds.OfServer(x.reason),
		}
		if r.count(then.Accounts.Ended[x.Account], now.Accounts.Ended[x.Account]) {
			all = append(all, r)
		}
	}
	return all
}

// libraryHeadlines are the headlines of a process whose handlers answer the requests, in place of those about an upstream.
var libraryHeadlines = map[string]string{
	runbook.UpstreamFails:   "Handlers fail.",
	runbook.UpstreamRejects: "Handlers answer that they are overloaded.",
	runbook.UpstreamQuota:   "Handlers answer that a quota is used up.",
}

// forLibrary puts a verdict in the words of a process that uses the library.
func (v *Verdict) forLibrary() {
	if headline, ok := libraryHeadlines[v.Kind]; ok {
		v.Headline = headline
	}
	v.Text = libraryWords.Replace(v.Text)
}

var libraryWords = strings.NewReplacer(
	"rejected by the upstream", "rejected by handlers",
	"Look at the service: it hangs, or gets more requests than it can do.",
	"Look at the handlers: they hang, or get more requests than they can do.",
)

// idle returns what a process says before its first request.
func idle(s *State) string {
	if s.Program == library {
		return "No request has come to a gate of this process."
	}
	return "Clients connect to " + addresses(s) + "."
}

// serverOf returns what a gate is for: a cluster, or a server of the library.
func (g *Gate) serverOf() string {
	if g.Cluster == "" {
		return g.Listener
	}
	return g.Cluster
}

// silentServers reports whether no server of a process answers.
func (s *State) silentServers() bool {
	for i := range s.Gates {
		if !s.Gates[i].Unknown {
			return false
		}
	}
	return true
}

// libraryTiles returns the tiles of a process that uses the library.
func libraryTiles(s *State, all []Tile) []Tile {
	for i := range all {
		switch t := &all[i]; t.ID {
		case "lost":
			if *t.Value == 0 {
				t.Note = "of what was admitted"
			} else {
				t.Note = human.PerSecond(s.Mean.Late) + " late, " + human.PerSecond(s.Mean.Failed+s.Mean.RejectedUpstream) + " failed"
			}
		case "gone":
			t.Note = strings.ReplaceAll(t.Note, " sent", " at work")
		case "retry-ratio":
			t.Note = strings.ReplaceAll(t.Note, "of what was sent", "of the calls of this process")
		}
	}
	return all
}

// whatKeysName says what the keys of limits are.
func (s *State) whatKeysName() string {
	if s.Program == library {
		return "the key of the call, or what ingress.Config.LimitKey makes of it"
	}
	return "the cluster, or what the key of a route (routes[].key) names in it"
}

// fewEvents is how many decisions without the end of a request a program has that does not report ends.
const fewEvents = 100

// withoutEnds returns a notice if the page receives the decisions of servers, and not how their requests end.
func withoutEnds(now *collector.Totals, d *collector.Details) []Notice {
	if !now.Serves() || now.Accounts.Sum() > 0 || d.Events[""] == nil {
		return nil
	}
	decisions := uint64(0)
	for _, kinds := range d.Events[""] {
		for _, of := range kinds {
			for _, n := range of {
				decisions += n
			}
		}
	}
	if decisions < fewEvents {
		return nil
	}
	return []Notice{{
		Headline: "The page does not learn how requests end.",
		Text:     "Set Observer of the server to the Page itself, and other observers to Config.Next of package spilladmin.",
	}}
}
