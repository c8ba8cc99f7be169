package admin

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/kinds"
	"github.com/seed90641741/spillway/internal/admin/limits"
	"github.com/seed90641741/spillway/internal/admin/settings"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// A State is the complete state of a process at one time: of a proxy, of a service of quotas, or of a program that
// uses the library. The page, the stream, the JSON, the metrics and the texts show it or a part of it, and nothing
// else. It is the answer to GET /api/v1/state: names of fields do not change, and new ones may come.
//
// What a page of many processes needs: Name and Program say which one this is. Mean has what was offered, served
// (goodput) and rejected by class, per second. Reasons has the rejections of the last minute by policy, reason, mode
// and class. Top has the customers, the routes and the callers that are rejected most. Verdict says it in words.
//
// The blocks that only a proxy has are empty in a program that uses the library: listeners, tuned and mongo. There
// a gate is a server (its listener has the name, its cluster is empty) and a cluster is a backend of a client.
type State struct {
	Name    string `json:"name"`    // of the process; the name of the host unless the program sets another one
	Program string `json:"program"` // proxy, quota, or library

	Time    time.Time `json:"time"`
	Started time.Time `json:"started"`
	Version string    `json:"version"`
	Ready   bool      `json:"ready"`

	Verdict   Verdict          `json:"verdict"`
	Tiles     []Tile           `json:"tiles"`
	Last      Figures          `json:"last"` // of the last second
	Mean      Figures          `json:"mean"` // of the last ten
	Counts    collector.Counts `json:"counts"`
	Reasons   []Reason         `json:"reasons"`
	Top       decisions.Tops   `json:"top"` // of rejections, in the last 5 to 10 minutes
	Limits    []limits.Limit   `json:"limits"`
	MongoAway []string         `json:"mongo_away,omitempty"` // listeners whose servers are away

	Levels

	Totals  *collector.Totals `json:"-"` // since the start
	Details collector.Details `json:"-"` // likewise

	Rejected decisions.Rejected `json:"-"` // by customer, likewise
}

// Classes has a value for each criticality, from SHEDDABLE to CRITICAL_PLUS.
type Classes [spillway.Criticalities]float64

func (c Classes) sum() (s float64) {
	for _, v := range c {
		s += v
	}
	return s
}

// Figures are rates per second and levels over some seconds. Null values are unknown.
type Figures struct {
	Time    int64   `json:"t"`       // the end, in seconds since 1970 by the clock at the start
	Seconds float64 `json:"seconds"` // how many

	Offered          float64 `json:"offered"`
	Goodput          float64 `json:"goodput"`
	Late             float64 `json:"late"`
	Failed           float64 `json:"failed"`
	RejectedUpstream float64 `json:"rejected_upstream"`   // by the upstream
	GoneSent         float64 `json:"client_gone_sent"`    // by clients, after the request was sent
	GoneWaiting      float64 `json:"client_gone_waiting"` // by clients, before it was
	Rejected         Classes `json:"rejected"`
	Would            Classes `json:"would_reject"` // where gates only observe
	Ended            Classes `json:"ended"`        // with any outcome

	P50      *float64 `json:"p50_ms"`
	P99      *float64 `json:"p99_ms"`     // 99 of 100 answers were quicker
	Slowest  float64  `json:"slowest_ms"` // the slowest single answer
	Answers  uint64   `json:"answers"`    // that the quantiles are of
	Deadline *float64 `json:"deadline_ms"`

	InFlight int      `json:"in_flight"`
	Peak     int      `json:"in_flight_peak"` // including waiting requests; the sum of the peaks of all gates
	Limit    *float64 `json:"limit"`
	Waiting  int      `json:"waiting"`
	// Limits has the limits that move by themselves, by name; 0: holds nothing back.
	Limits map[string]float64 `json:"limits,omitempty"`

	RetryRatio *float64 `json:"retry_ratio"` // retries for each request that was sent
	Budget     *float64 `json:"retry_budget"`
	Throttle   Classes  `json:"throttle"`
	Stalled    float64  `json:"stalled"` // share of the time in which this process lacked a processor
}

// lost is the rate of requests that reached the upstream but were not served in time.
func (f *Figures) lost() float64 { return f.Late + f.Failed + f.RejectedUpstream }

// gone is the rate of requests that clients gave up.
func (f *Figures) gone() float64 { return f.GoneSent + f.GoneWaiting }

// A Reason is a reason for which requests were rejected or lost.
type Reason struct {
	Policy  string  `json:"policy"`
	Outcome string  `json:"outcome"`
	Reason  string  `json:"reason"`
	Mode    string  `json:"mode"`
	Words   string  `json:"words"`
	Minute  Classes `json:"minute"` // in the last minute
	Total   Classes `json:"total"`  // since the start

	Do       string           `json:"do"`       // what an operator does about it
	Settings []settings.Field `json:"settings"` // of the clusters and listeners that had it
	Link     string           `json:"link"`     // to the section of the runbook
	// Measured is the value that the policy measured at its last rejection for this reason, and
	// its limit. For late answers it is the p99 and the usual deadline, and for the reason
	// budget the tokens of the emptiest budget. It is nil for a reason without a measured value.
	Measured *Measured `json:"measured,omitempty"`

	places []string // the clusters and listeners that had it since the start
}

// Measured is a measured value and its limit.
type Measured struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
	Limit float64   `json:"limit"`
	Unit  string    `json:"unit"`
}

// A sample has the totals and levels that were read at one time.
type sample struct {
	at      time.Time
	wall    time.Time // the time of day
	totals  *collector.Totals
	levels  Levels
	peak    int           // requests in flight, since the sample before
	stalled time.Duration // without a processor, likewise
}

// quorum is the minimum number of answers for a p99.
const quorum = 100

// figures returns the figures between the samples then and now, with quantiles since a third
// sample.
func figures(then, now, quantiles *sample) Figures {
	seconds := max(now.at.Sub(then.at).Seconds(), 1e-3)
	f := Figures{Time: now.at.Unix(), Seconds: seconds}
	was, is := &then.totals.Accounts, &now.totals.Accounts
	for class := range f.Ended {
		rate := func(a accounts.Account) float64 { return float64(is.Ended[a][class]-was.Ended[a][class]) / seconds }
		f.Goodput += rate(accounts.Served)
		f.Late += rate(accounts.Late)
		f.Failed += rate(accounts.Failed)
		f.RejectedUpstream += rate(accounts.RejectedUpstream)
		f.GoneSent += rate(accounts.GoneSent)
		f.GoneWaiting += rate(accounts.GoneWaiting)
		f.Rejected[class] = rate(accounts.Rejected)
		for a := range accounts.Count {
			f.Ended[class] += rate(accounts.Account(a))
		}
		for side := range now.totals.Would { // a request may meet a gate of either
			f.Would[class] = max(f.Would[class], float64(now.totals.Would[side][class]-then.totals.Would[side][class])/seconds)
		}
	}
	f.Offered = float64(is.Offered-was.Offered) / seconds
	f.service(then.levels.Service, now.levels.Service)
	f.latency(quantiles, now)
	f.levels(now)
	sent := f.Goodput + f.Late + f.Failed + f.RejectedUpstream
	if now.totals.Calls > 0 {
		sent = float64(now.totals.Calls-then.totals.Calls) / seconds
	}
	if sent > 0 && (f.Budget != nil || now.totals.Retries > 0) {
		f.RetryRatio = new(float64(now.totals.Retries-then.totals.Retries) / seconds / sent)
	}
	return f
}

func (f *Figures) latency(then, now *sample) {
	ended := now.totals.Answers().Since(then.totals.Answers())
	f.Answers, f.Slowest = ended.Total(), milliseconds(now.totals.Slowest)
	if f.Answers > 0 {
		f.P50 = new(milliseconds(ended.Quantile(0.5)))
	}
	if f.Answers >= quorum {
		f.P99 = new(milliseconds(ended.Quantile(0.99)))
	}
	if given := now.totals.Deadlines.Since(&then.totals.Deadlines); given.Total() > 0 {
		f.Deadline = new(milliseconds(given.Typical()))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// levels sets the figures that are levels and not counts.
func (f *Figures) levels(now *sample) {
	limit := 0.0
	for _, g := range now.levels.Gates {
		f.InFlight += g.InFlight
		f.Waiting += g.Waiting
		if !g.Unknown { // then it is how many are let in to find out
			limit += g.Limit
		}
	}
	for _, x := range now.levels.Clusters {
		if x.Queue != nil {
			f.Waiting += x.Queue.Waiting
			f.InFlight = max(0, f.InFlight-x.Queue.Waiting)
			limit += float64(x.Queue.Places)
		}
		for class, p := range x.Throttle {
			f.Throttle[class] = max(f.Throttle[class], p)
		}
	}
	if least := emptiest(now.levels.Clusters); least != nil {
		f.Budget = new(least.Left / least.Capacity)
	}
	f.Peak = max(now.peak, f.InFlight+f.Waiting)
	if limit > 0 {
		f.Limit = &limit
	}
}

// reasons returns why requests were rejected or lost, the most frequent of the last
// minute first. Only the retry policy reports the outcome of a request that all gates
// admitted, except for a request whose deadline expired while it waited.
func reasons(then, now *collector.Totals, d *collector.Details, library bool) []Reason {
	all := []Reason{}
	for mode := range now.Events {
		for k := range telemetry.Kind(telemetry.Kinds) {
			r := Reason{Policy: k.Policy(), Outcome: k.Outcome(), Reason: k.Reason(), Mode: spillway.Mode(mode).String(), Words: kinds.Words(k)}
			if library {
				r.Words = kinds.LibraryWords(k)
			}
			if !kinds.Shown(k) || !r.count(then.Events[mode][k], now.Events[mode][k]) {
				continue
			}
			for cluster, events := range d.Events {
				if events[mode][k] != (classCounts{}) {
					r.places = append(r.places, cluster)
				}
			}
			all = append(all, r)
		}
	}
	if library {
		all = append(all, serverReasons(then, now)...)
	} else {
		all = append(all, ownReasons(then, now, d.Places)...)
	}
	slices.SortStableFunc(all, func(a, b Reason) int { return cmp.Compare(b.Minute.sum(), a.Minute.sum()) })
	return all
}

// classCounts are counts of each criticality.
type classCounts = [spillway.Criticalities]uint64

// count sets the counts of a reason, and reports whether it has occurred.
func (r *Reason) count(then, now classCounts) bool {
	for class, n := range now {
		r.Total[class], r.Minute[class] = float64(n), float64(n-then[class])
	}
	return r.Total.sum() > 0
}

var goneAccounts = [...]accounts.Account{accounts.GoneWaiting, accounts.GoneSent}

// ownReasons returns the clients that have left, and rejections that no policy made: they
// have no events. Their rejections have no class, and count as CRITICAL.
func ownReasons(then, now *collector.Totals, places []accounts.PlaceTotal) (all []Reason) {
	add := func(outcome, reason string, then, now classCounts, at func(*accounts.PlaceTotal) uint64) {
		r := Reason{Policy: decisions.ByProxy, Outcome: outcome, Reason: reason, Mode: spillway.ModeEnforce.String(), Words: kinds.OfReason(reason)}
		if !r.count(then, now) {
			return
		}
		for i := range places {
			if p := &places[i]; at(p) > 0 {
				r.places = append(r.places, p.Cluster, p.Listener)
			}
		}
		all = append(all, r)
	}
	for _, a := range goneAccounts {
		add("client gone", a.String(), then.Accounts.Ended[a], now.Accounts.Ended[a], func(p *accounts.PlaceTotal) uint64 { return p.Ended[a] })
	}
	critical := func(n uint64) (c classCounts) {
		c[spillway.Critical.Index()] = n
		return c
	}
	for reason := accounts.MaxRequests; int(reason) < accounts.Reasons; reason++ {
		add("rejected", reason.String(), critical(then.Accounts.Rejected[reason]), critical(now.Accounts.Rejected[reason]),
			func(p *accounts.PlaceTotal) uint64 { return p.Rejected[reason] })
	}
	return all
}

// clusters returns the clusters of the sample now, with the rates since the sample then.
func clusters(then, now *sample) []Cluster {
	type key struct{ cluster, address string }
	before := make(map[key]Endpoint)
	for _, x := range then.levels.Clusters {
		for _, e := range x.Endpoints {
			before[key{x.Name, e.Address}] = e
		}
	}
	seconds := max(now.at.Sub(then.at).Seconds(), 1e-3)
	all := append([]Cluster{}, now.levels.Clusters...) // not null, in JSON
	for i := range all {
		x := &all[i]
		x.Rejected = float64(now.totals.Rejected[x.Name]-then.totals.Rejected[x.Name]) / seconds
		x.Endpoints = append([]Endpoint{}, x.Endpoints...)
		for j := range x.Endpoints {
			e := &x.Endpoints[j]
			e.compare(before[key{x.Name, e.Address}], seconds)
		}
	}
	return all
}

// compare sets the rates of an endpoint since some seconds ago. An earlier one with more attempts
// was another endpoint with that address.
func (e *Endpoint) compare(before Endpoint, seconds float64) {
	if before.Attempts > e.Attempts {
		before = Endpoint{}
	}
	e.Rate, e.Failing = float64(e.Attempts-before.Attempts)/seconds, float64(e.Errors-before.Errors)/seconds
	if n := e.Answers - before.Answers; n > 0 {
		e.Latency = milliseconds(e.Took-before.Took) / float64(n)
	}
}
