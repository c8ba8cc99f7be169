package admin

import (
	"fmt"
	"strings"

	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/human"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
)

// service sets the figures between two samples of a service of quotas.
func (f *Figures) service(then, now *quotastats.Service) {
	if then == nil || now == nil {
		return
	}
	for class := range now.Calls {
		admitted := float64(now.Calls[class].AdmittedTotal-then.Calls[class].AdmittedTotal) / f.Seconds
		f.Rejected[class] = float64(now.Calls[class].RejectedTotal-then.Calls[class].RejectedTotal) / f.Seconds
		f.Ended[class] = admitted + f.Rejected[class]
		f.Goodput += admitted
		f.Offered += f.Ended[class]
	}
}

// judgeService returns the verdict on the figures of a service of quotas.
func judgeService(s *State) Verdict {
	f, q := &s.Mean, s.Service
	switch {
	case len(s.Notices) > 0:
		return say("warn", "", s.Notices[0].Headline, strings.TrimSpace(noticed(s, s.Notices[0].Headline))+" "+usage(s))
	case q.Envoys == 0 && q.Asked() == 0:
		return say("idle", "", "No Envoy yet.", "Envoys connect to "+q.Address+".")
	case f.Offered == 0:
		return say("idle", "", "No requests.", fmt.Sprintf("Envoys reported none in the last %.0f s. %s connected.", f.Seconds, human.Counted(q.Envoys, "Envoy")))
	case f.matters(f.Rejected.sum(), rejectedShare):
		return say("warn", "", "Customers that ask for more than their quota are rejected.", usage(s))
	}
	return say("ok", "", "Customers are within their quotas.", usage(s))
}

// usage says what is asked for, and by whom it is too much.
func usage(s *State) string {
	f := &s.Mean
	text := fmt.Sprintf("%s asked for, %s admitted", human.PerSecond(f.Offered), human.PerSecond(f.Goodput))
	if rejected := f.Rejected.sum(); rejected > 0 {
		text += fmt.Sprintf(", %s rejected", human.PerSecond(rejected))
	}
	text += fmt.Sprintf(" by %s.", human.Counted(s.Service.Envoys, "Envoy"))
	return text + customers.AtTheLimit(s.Customers)
}

// serviceTiles returns the figures of a service of quotas.
func serviceTiles(s *State) []Tile {
	f, q := &s.Mean, s.Service
	admitted := rateTile("goodput", "Admitted", f.Goodput, "by Envoys")
	rejected := rateTile("rejected", "Rejected", f.Rejected.sum(), "nothing")
	if f.Offered > 0 {
		admitted.Note = human.Percent(f.Goodput/f.Offered) + " of asked for"
	}
	if *rejected.Value > 0 {
		rejected.Note = human.Percent(*rejected.Value/f.Offered) + " of asked for"
	}
	if f.matters(*rejected.Value, rejectedShare) {
		rejected.Level = "warn"
	}
	return []Tile{
		rateTile("offered", "Asked for", f.Offered, "by all customers"), admitted, rejected,
		countTile("limited", "Customers at their limit", len(customers.Limited(s.Customers)), "of "+human.Grouped(float64(len(s.Customers)))+" shown below"),
		countTile("envoys", "Envoys", q.Envoys, human.Grouped(float64(q.Listed+q.Unlisted))+" buckets"),
		sharedTile(s),
	}
}

func countTile(id, name string, n int, note string) Tile {
	value := float64(n)
	return Tile{ID: id, Name: name, Value: &value, Text: human.Grouped(value), Note: note}
}

// sharedTile shows with how many tasks the limits are shared.
func sharedTile(s *State) Tile {
	t := Tile{ID: "tasks", Name: "Tasks that share", Text: unknown, Note: "no levels yet"}
	for _, q := range s.Quotas {
		if q.Tasks > 0 {
			t = countTile("tasks", t.Name, q.Tasks, "levels "+human.Duration(milliseconds(q.Age))+" old")
		}
		if q.Lost || q.Conflict {
			t.Level = "warn"
		}
	}
	return t
}

// countsOf returns the requests since the start. A service of quotas has no accounts: what Envoys admitted counts as served.
func countsOf(now *sample) collector.Counts {
	c, q := now.totals.Counts(), now.levels.Service
	if q == nil {
		return c
	}
	var served, rejected collector.Classes
	for class, n := range q.Calls {
		served[class], rejected[class] = n.AdmittedTotal, n.RejectedTotal
	}
	c.Offered += q.Asked()
	c.Ended[accounts.Served.String()], c.Ended[accounts.Rejected.String()] = served, rejected
	return c
}
