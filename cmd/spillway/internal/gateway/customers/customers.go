// Package customers says what customers make of their quotas, and what their requests cost.
package customers

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/finite"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/textpage"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/quota"
)

// A Customer is what a customer makes of a quota at one gate.
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

	Admitted uint64 `json:"admitted"` // requests since the customer has its place
	Rejected uint64 `json:"rejected"` // likewise
}

// Of returns how customers use the quota of a gate. It returns only customers that [Top] may choose.
func Of(listener, cluster string, customers []quota.CustomerStats) []Customer {
	all := make([]Customer, 0, min(len(customers), 5*Most))
	for _, i := range chosen(customers) {
		c := &customers[i]
		all = append(all, Customer{
			Listener: listener, Cluster: cluster, Customer: decisions.Clean(c.Customer), Listed: c.Known, Unlisted: c.Unlisted,
			Total: finite.Number(c.Limit), Limit: finite.Number(c.Rate), Setting: c.Setting,
			Wants: finite.Number(c.Wants), Full: finite.Number(c.Debt),
			AdmittedRate: finite.Number(c.AdmittedRate), RejectedRate: finite.Number(c.RejectedRate),
			Admitted: admitted(c), Rejected: rejected(c),
		})
	}
	return all
}

func admitted(c *quota.CustomerStats) (n uint64) {
	for i := range c.Classes {
		n += c.Classes[i].AdmittedTotal
	}
	return n
}

func rejected(c *quota.CustomerStats) (n uint64) {
	for i := range c.Classes {
		n += c.Classes[i].RejectedTotal
	}
	return n
}

// chosen returns the indices of all totals of unlisted customers, and of the customers that come first by use and,
// of the others, by rejections: of the listed ones and of all others.
func chosen(all []quota.CustomerStats) (indices []int) {
	byUse, byRejections := [2]first{}, [2]first{}
	for i := range all {
		if all[i].Unlisted {
			indices = append(indices, i)
		} else {
			byUse[group(&all[i])].add(all, i, compareUse)
		}
	}
	for i := range all {
		if g := group(&all[i]); !all[i].Unlisted && !slices.Contains(byUse[g], i) {
			byRejections[g].add(all, i, compareRejections)
		}
	}
	return slices.Concat(indices, byUse[0], byUse[1], byRejections[0], byRejections[1])
}

// group returns 0 for a customer that the quota lists.
func group(c *quota.CustomerStats) int {
	if c.Known {
		return 0
	}
	return 1
}

func compareUse(a, b *quota.CustomerStats) int {
	return cmp.Or(cmp.Compare(finite.Number(b.Debt), finite.Number(a.Debt)),
		cmp.Compare(finite.Number(b.Wants), finite.Number(a.Wants)), cmp.Compare(a.Customer, b.Customer))
}

func compareRejections(a, b *quota.CustomerStats) int {
	return cmp.Or(cmp.Compare(finite.Number(b.RejectedRate), finite.Number(a.RejectedRate)),
		cmp.Compare(rejected(b), rejected(a)), cmp.Compare(a.Customer, b.Customer))
}

// first has the indices of the first [Most] customers in some order.
type first []int

func (f *first) add(all []quota.CustomerStats, i int, compare func(a, b *quota.CustomerStats) int) {
	if n := len(*f); n == Most && compare(&all[(*f)[n-1]], &all[i]) <= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(*f, i, func(x, i int) int { return compare(&all[x], &all[i]) })
	*f = slices.Insert(*f, at, i)
	*f = (*f)[:min(len(*f), Most)]
}

// Most is how many customers [Top] returns by use, and by rejections.
const Most = 20

// Top returns all totals of unlisted customers, and the customers whose bucket is fullest, and of the others those
// with most rejections in the last seconds: first of the customers that the quota lists, then of all others. So a client
// that makes up names hides no listed customer.
func Top(all []Customer) []Customer {
	var totals, listed, others []Customer
	for i := range all {
		switch c := &all[i]; {
		case c.Unlisted:
			totals = append(totals, *c)
		case c.Listed:
			listed = append(listed, *c)
		default:
			others = append(others, *c)
		}
	}
	return slices.Concat(totals, top(listed), top(others))
}

func top(all []Customer) []Customer {
	slices.SortFunc(all, func(a, b Customer) int {
		return cmp.Or(cmp.Compare(b.Full, a.Full), cmp.Compare(b.Wants, a.Wants), cmp.Compare(a.Customer, b.Customer))
	})
	n := min(Most, len(all))
	top, rest := all[:n:n], all[n:]
	slices.SortFunc(rest, func(a, b Customer) int {
		return cmp.Or(cmp.Compare(b.RejectedRate, a.RejectedRate), cmp.Compare(b.Rejected, a.Rejected), cmp.Compare(a.Customer, b.Customer))
	})
	return append(top, rest[:min(Most, len(rest))]...)
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
	fmt.Fprintf(w, "LIMIT is the limit over all proxies, and HERE the part of it that this proxy may use now; all other columns are of this proxy, too.\n"+
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

// perSecond returns the text of a limit.
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
