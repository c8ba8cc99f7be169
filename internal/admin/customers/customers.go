// Package customers shows how customers use their quotas, and what their requests cost.
package customers

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/finite"
	"github.com/seed90641741/spillway/internal/admin/textpage"
	"github.com/seed90641741/spillway/quota"
)

// A Customer is the use that a customer makes of a quota at one gate.
type Customer struct {
	Listener string  `json:"listener"`
	Cluster  string  `json:"cluster"`
	Customer string  `json:"customer"` // empty: all that share a limit
	Listed   bool    `json:"listed"`   // by name in the quota; clients can make up all other names
	Unlisted bool    `json:"unlisted"` // all customers together that the quota does not list (unlisted_total)
	Total    float64 `json:"total"`    // its limit over all proxies, in cost per second; 0: there is no limit
	Limit    float64 `json:"limit"`    // granted to this proxy now, in cost per second; 0: none is known, or there is no limit
	Setting  string  `json:"setting"`  // what makes Limit less than Total: unlisted_total or capacity; empty: neither
	Wants    float64 `json:"wants"`    // asked for, in cost per second, rejected requests included
	Full     float64 `json:"full"`     // share of its bucket that is used: at 1 everything is rejected
	// AdmittedRate and RejectedRate are requests per second in this proxy, in the last 10 seconds.
	AdmittedRate float64 `json:"admitted_rate"`
	RejectedRate float64 `json:"rejected_rate"`
	UsedRate     float64 `json:"used_rate"` // cost per second that was charged, likewise

	Admitted uint64 `json:"admitted"` // requests since the customer has its place
	Rejected uint64 `json:"rejected"` // likewise
}

// Most is how many customers [Top] returns by use, and by rejections.
const Most = 20

// Of returns how customers use the quota of a gate. It returns only customers that [Top] may choose.
func Of(listener, cluster string, customers []quota.CustomerStats) []Customer {
	var top selection
	for i := range customers {
		c := &customers[i]
		x := Customer{
			Listener: listener, Cluster: cluster, Customer: c.Customer, Listed: c.Known, Unlisted: c.Unlisted,
			Total: finite.Number(c.Limit), Limit: finite.Number(c.Rate), Setting: c.Setting,
			Wants: finite.Number(c.Wants), Full: finite.Number(c.Debt),
			AdmittedRate: finite.Number(c.AdmittedRate), RejectedRate: finite.Number(c.RejectedRate), UsedRate: finite.Number(c.UsedRate),
		}
		for j := range c.Classes {
			x.Admitted += c.Classes[j].AdmittedTotal
			x.Rejected += c.Classes[j].RejectedTotal
		}
		top.add(&x)
	}
	all := top.all()
	for i := range all {
		all[i].Customer = decisions.Clean(all[i].Customer)
	}
	return all
}

// Top returns all totals of unlisted customers, and the customers whose bucket is fullest, and of the others those
// with most rejections in the last seconds: first of the customers that the quota lists, then of all others. So a client
// that makes up names hides no listed customer.
func Top(all []Customer) []Customer {
	var top selection
	for i := range all {
		top.add(&all[i])
	}
	return top.all()
}

// A selection chooses customers for [Top].
type selection struct {
	totals         []Customer
	listed, others leaders
}

func (s *selection) add(c *Customer) {
	switch {
	case c.Unlisted:
		s.totals = append(s.totals, *c)
	case c.Listed:
		s.listed.add(c)
	default:
		s.others.add(c)
	}
}

func (s *selection) all() []Customer { return slices.Concat(s.totals, s.listed.all(), s.others.all()) }

// leaders are the first customers by use and by rejections. A customer may be in both lists, so the second is
// twice as long.
type leaders struct{ byUse, byRejections []Customer }

func (l *leaders) add(c *Customer) {
	l.byUse = insert(l.byUse, c, Most, compareUse)
	l.byRejections = insert(l.byRejections, c, 2*Most, compareRejections)
}

// all returns the first customers by use, and the first of the others by rejections.
func (l *leaders) all() []Customer {
	others := slices.DeleteFunc(l.byRejections, func(c Customer) bool { return slices.Contains(l.byUse, c) })
	return append(l.byUse, others[:min(Most, len(others))]...)
}

func compareUse(a, b Customer) int {
	return cmp.Or(cmp.Compare(b.Full, a.Full), cmp.Compare(b.Wants, a.Wants), cmp.Compare(a.Customer, b.Customer))
}

func compareRejections(a, b Customer) int {
	return cmp.Or(cmp.Compare(b.RejectedRate, a.RejectedRate), cmp.Compare(b.Rejected, a.Rejected), cmp.Compare(a.Customer, b.Customer))
}

// insert inserts a customer into a sorted list of the first most ones.
func insert(first []Customer, c *Customer, most int, compare func(a, b Customer) int) []Customer {
	if len(first) == most && compare(first[most-1], *c) <= 0 {
		return first
	}
	at, _ := slices.BinarySearchFunc(first, *c, compare)
	first = slices.Insert(first, at, *c)
	return first[:min(len(first), most)]
}

// A Cost is the processor time of a request, as learned from load reports.
type Cost struct {
	Key   string        `json:"key"`   // a customer or a route; empty: all that share a cost
	Cost  time.Duration `json:"cost"`  // of a request
	Error time.Duration `json:"error"` // standard error of Cost
	Used  bool          `json:"used"`  // the quota charges it
}

// Costs returns the costs that are known, and at most 128 of them.
func Costs(s cost.Stats) (all []Cost) {
	for _, k := range s.Keys {
		if k.Calls > 0 && k.StandardError > 0 { // else nothing is known yet
			all = append(all, Cost{Key: decisions.Clean(k.Key), Cost: k.Cost, Error: k.StandardError, Used: k.Used})
		}
	}
	return all
}

// Write writes customers as aligned text.
func Write(w io.Writer, all []Customer) {
	textpage.Row(w, "LISTENER", "CLUSTER", "CUSTOMER", "LISTED", "LIMIT/S", "HERE/S", "LIMITED BY", "ADMITTED/S", "REJECTED/S", "ADMITTED", "REJECTED")
	for i := range all {
		c := &all[i]
		name, listed := named(c.Customer), "no"
		if c.Listed {
			listed = "yes"
		}
		if c.Unlisted {
			name, listed = "(all unlisted customers together)", "–"
		}
		textpage.Row(w, c.Listener, cmp.Or(c.Cluster, "–"), name, listed, perSecond(c.Total), perSecond(c.Limit), limitedBy(c),
			rounded(c.AdmittedRate), rounded(c.RejectedRate), c.Admitted, c.Rejected)
	}
	fmt.Fprintf(w, "LIMIT is the limit over all processes, and HERE the part of it that this one may use now; all other columns are of this one, too.\n"+
		"LIMITED BY names what all customers share if it leaves a customer less than its limit. Per second is the mean of the last 10 seconds.\n"+
		"LIMIT and HERE count 1 for a request, unless its cost is learned or measured. –: no limit.\n"+
		"Shown are the %d customers that have used most of what they may, and %d others with most rejections now: "+
		"of those that the file lists, and of all others.\n\n", Most, Most)
}

// limitedBy names the setting that limits a customer.
func limitedBy(c *Customer) string {
	switch {
	case c.Setting != "":
		return c.Setting
	case c.Unlisted:
		return quota.UnlistedTotal
	case c.Total == 0:
		return "–"
	}
	return "its limit"
}

func perSecond(limit float64) string {
	if limit == 0 {
		return "–"
	}
	return rounded(limit)
}

// rounded returns the text of a rate, with a digit after the point below 10.
func rounded(v float64) string {
	if v < 9.95 {
		return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// WriteCosts writes the costs of a cluster as aligned text. The first call writes the heading.
func WriteCosts(w io.Writer, heading bool, cluster string, all []Cost) {
	if heading {
		textpage.Row(w, "CLUSTER", "COST OF", "PROCESSOR TIME", "ERROR", "CHARGED")
	}
	for _, c := range all {
		textpage.Row(w, cluster, named(c.Key), c.Cost, c.Error, c.Used)
	}
}

// named returns the name of a customer; many share the empty one.
func named(name string) string { return decisions.NameOf(name, "(all others)") }
