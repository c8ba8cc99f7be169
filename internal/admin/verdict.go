package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/human"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// A Verdict summarizes the figures in one or two sentences.
type Verdict struct {
	Level    string `json:"level"` // idle, ok, warn, bad
	Kind     string `json:"kind"`  // of what is wrong, as package runbook has it; empty: nothing is, or a notice says it
	Headline string `json:"headline"`
	Text     string `json:"text"`
	Do       string `json:"do,omitempty"` // what an operator does about it
}

func say(level, kind, headline, text string) Verdict {
	return Verdict{Level: level, Kind: kind, Headline: headline, Text: text}
}

// Thresholds of a notable loss: a share of the offered requests, and a least number of
// requests.
const (
	lostShare     = 0.05
	rejectedShare = 0.01
	fewRequests   = 5
)

// verdict returns the verdict on the figures, in the words of the program, and what to do. ever is as for judge.
func verdict(s *State, ever bool) Verdict {
	v := judge(s, ever)
	if s.Program == library {
		v.forLibrary()
	}
	e, _ := s.condition(v.Kind)
	if v.Do = e.Do; s.unprotected(v.Kind) {
		v.Do = strings.TrimSpace(s.enforceIt() + " " + v.Do)
	}
	return v
}

// judge returns the verdict on the figures. ever is whether there was a request since the
// start. Each claim is computed here.
func judge(s *State, ever bool) Verdict {
	f := &s.Mean
	ended := f.Ended.sum()
	switch {
	case s.Draining:
		return say("warn", "", "Draining.", "No new connections are accepted; "+human.Counted(f.InFlight, "request")+" in flight.")
	case s.Service != nil:
		return judgeService(s)
	case len(s.MongoAway) > 0 && f.lost() >= f.Goodput:
		return say("bad", telemetry.NoticeMongoDB, "No MongoDB server behind "+human.Listed(s.MongoAway)+" can be used.",
			fmt.Sprintf("Servers hung up or could not be reached in the last %.0f s: a failover, or they are down. Drivers connect again by themselves.", f.Seconds)+
				noticed(s, ""))
	case !ever && len(s.Notices) > 0:
		return say("warn", "", s.Notices[0].Headline, "No request yet. "+idle(s)+noticed(s, s.Notices[0].Headline))
	case !ever:
		return say("idle", "", "No request yet.", idle(s))
	case f.InFlight > 0 && ended == 0:
		return say("bad", runbook.Unanswered, "Nothing is answered.", fmt.Sprintf("%s in flight, %s more arrived, and none has ended in the last %.0f s.%s",
			human.Counted(f.InFlight, "request"), human.PerSecond(f.Offered), f.Seconds, unreachable(s))+noticed(s, ""))
	case f.Offered == 0 && ended == 0 && len(s.Notices) > 0:
		return say("warn", "", s.Notices[0].Headline, fmt.Sprintf("No requests came in the last %.0f s.", f.Seconds)+noticed(s, s.Notices[0].Headline))
	case f.Offered == 0 && ended == 0:
		return say("idle", "", "No requests.", fmt.Sprintf("None came in the last %.0f s.", f.Seconds))
	}
	v := Verdict{Text: fmt.Sprintf("%s offered, %s answered in time.", human.PerSecond(f.Offered), human.PerSecond(f.Goodput))}
	v.Level, v.Kind, v.Headline = headline(s)
	for _, more := range []string{losses(f), rejectedWords(f), would(s), latencies(f), unreachable(s), unansweredWords(s)} {
		if more != "" {
			v.Text += " " + strings.TrimSpace(more)
		}
	}
	v.Text += noticed(s, v.Headline)
	return v
}

// noticed returns the first notices; the page lists all of them. The one that is the headline is not repeated.
func noticed(s *State, headline string) (text string) {
	for _, n := range s.Notices[:min(2, len(s.Notices))] {
		if n.Headline != headline {
			text += " " + n.Headline
		}
		text += " " + n.Text
	}
	return text
}

// matters reports whether a rate is a notable share of the offered requests.
func (f *Figures) matters(rate, share float64) bool {
	return rate > share*f.Offered && rate*f.Seconds >= fewRequests
}

// headline returns the severity, the kind and the cause: the largest part of the offered requests
// that was not served in time, or its explanation. A cluster that has just gone down comes first: its
// requests fail from now on. One that answers nothing explains both what is rejected and who gives up.
// Rejections because the upstream does not do its part count with what it lost.
func headline(s *State) (level, kind, text string) {
	f := &s.Mean
	down := clustersDown(s)
	failed, rejected := f.Failed+f.RejectedUpstream, f.Rejected.sum()
	held := rejected * s.heldShare()
	upstream := max(f.Late, f.Failed, f.RejectedUpstream) + held
	switch {
	case len(down) > 0 && f.matters(failed, 0) && failed >= max(f.Late, f.gone()): // also if it was well until now
		return "bad", runbook.Unreachable, "No endpoint of " + listed(down) + " is up" + commonTrouble(down) + "."
	case s.unansweredMatters():
		return "bad", runbook.LimitUnknown, s.unansweredHeadline()
	case !f.matters(f.lost()+f.gone(), lostShare):
		return protection(s)
	case f.Stalled >= starvedShare:
		return "bad", "", s.Notices[0].Headline
	case s.retried() && f.RejectedUpstream+rejected >= max(f.Late, f.gone(), f.Failed):
		return "bad", runbook.ClientsRetry, retriesHeadline
	case rejected-held > max(upstream, f.gone()):
		_, kind, text = protection(s)
		return "bad", kind, text
	case f.gone() >= upstream:
		return "bad", runbook.ClientsGone, "Clients give up before they are answered."
	case f.Late >= max(f.Failed, f.RejectedUpstream):
		return "bad", runbook.AnswersLate, "Answers come too late."
	case f.RejectedUpstream >= f.Failed && s.overQuota():
		return "bad", runbook.UpstreamQuota, "The upstream says that a quota is used up."
	case f.RejectedUpstream >= f.Failed:
		return "bad", runbook.UpstreamRejects, "The upstream rejects requests."
	default:
		return "bad", runbook.UpstreamFails, "The upstream fails."
	}
}

// heldShare returns the share of the rejections of the last minute that the upstream caused, as it
// rejected, failed or was late before.
func (s *State) heldShare() float64 {
	held, all := 0.0, 0.0
	for _, r := range s.Reasons {
		n := r.rejections(spillway.ModeEnforce)
		if all += n; r.Policy == "throttle" || r.Reason == spillway.ReasonDeadline.String() {
			held += n
		}
	}
	return held / max(all, 1)
}

// retriesHeadline is the headline while gates ask clients to stop retrying.
const retriesHeadline = "Clients retry what is rejected."

// commonTrouble returns why the endpoints of clusters are down, if the reason is the same for all.
func commonTrouble(down []Cluster) string {
	trouble := down[0].Endpoints[0].Down
	for _, x := range down {
		if slices.ContainsFunc(x.Endpoints, func(e Endpoint) bool { return e.Down != trouble }) {
			return ""
		}
	}
	return ": " + trouble
}

// overQuota reports whether most rejections by the upstream in the last minute were for
// quota.
func (s *State) overQuota() bool {
	minute := make(map[string]float64)
	for _, r := range s.Reasons {
		if r.Policy == "retry" {
			minute[r.Reason] += r.Minute.sum()
		}
	}
	return minute["over_quota"] > minute["overloaded"]
}

// rejections returns how many requests gates in a mode have rejected for a reason in the last minute.
func (r *Reason) rejections(mode spillway.Mode) float64 {
	if r.Outcome != "rejected" || r.Mode != mode.String() {
		return 0
	}
	return r.Minute.sum()
}

// retried reports whether a gate sees so many retries of clients that it asks them to stop.
func (s *State) retried() bool {
	return slices.ContainsFunc(s.Gates, func(g Gate) bool { return g.DontRetry })
}

// protection is headline when little is lost.
func protection(s *State) (level, kind, text string) {
	f := &s.Mean
	rejects := f.matters(f.Rejected.sum(), rejectedShare)
	limit := s.limitOf(spillway.ModeEnforce)
	switch {
	case rejects && f.Stalled >= starvedShare:
		return "warn", "", s.Notices[0].Headline
	case rejects && s.retried():
		return "warn", runbook.ClientsRetry, retriesHeadline
	case rejects && limit != "":
		return "warn", runbook.LimitRejects, limit + " reject" + plural(limit) + " requests."
	case rejects && f.overdue():
		return "warn", runbook.Overloaded, "Overloaded, and slow."
	case rejects && f.matters(f.lost()+f.gone(), lostShare):
		return "warn", runbook.Overloaded, "Overloaded, and protected in part."
	case rejects && inverted(f.Rejected, f.Ended):
		return "warn", runbook.Overloaded, "Overloaded, and more critical requests are rejected first: routes that wait for one pool need the same key."
	case rejects:
		return "warn", runbook.Overloaded, "Overloaded, and protected."
	case f.matters(f.Would.sum(), rejectedShare) && s.limitOf(spillway.ModeObserve) != "":
		return "warn", "", s.limitOf(spillway.ModeObserve) + " would reject requests."
	case f.matters(f.Would.sum(), rejectedShare):
		return "warn", "", "Overloaded, and not protected."
	case len(s.unanswered()) > 0:
		return "warn", runbook.LimitUnknown, s.unansweredHeadline()
	case len(s.Notices) > 0:
		return "warn", "", s.Notices[0].Headline
	case f.overdue():
		return "warn", runbook.AnswersLate, "Some answers come too late."
	default:
		return "ok", "", "All is well."
	}
}

// limitNames are the settings whose rejections do not depend on the load of the upstream, by
// policy and reason, or by policy alone.
var limitNames = map[string]string{
	"ratelimit": "The rate limit", "quota": "Quotas", "inflight": "The limit on requests in flight", "batch queue_full": "The full batch queue",
	"batch max_wait": "The batch queue", "proxy max_requests": "The listener's limit on requests", "throttle": "The throttle of an upstream that rejects",
	"proxy no_route": "Missing routes",
}

// limitOf returns the limit that made most rejections of the last minute; empty if policies that
// depend on load made half of them or more.
func (s *State) limitOf(mode spillway.Mode) string {
	by, most := make(map[string]float64), ""
	limits, all := 0.0, 0.0
	for _, r := range s.Reasons {
		n := r.rejections(mode)
		all += n
		if name := cmp.Or(limitNames[r.Policy+" "+r.Reason], limitNames[r.Policy]); name != "" {
			limits += n
			by[name] += n
			if by[name] > by[most] {
				most = name
			}
		}
	}
	if limits <= all/2 {
		return ""
	}
	return most
}

// plural returns the ending of a verb after a limit.
func plural(limit string) string {
	if strings.HasPrefix(limit, "The ") {
		return "s"
	}
	return ""
}
