package mongoproxy

import (
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/tune"
)

// Stats is a snapshot of a listener.
type Stats struct {
	Listener    string
	Connections connlimit.Stats
	Resets      resets.Counts // of connections
	Gate        ingress.Stats

	Commands  uint64        // that came, whatever became of them
	Exempt    uint64        // of these, the ones that passed all gates unseen
	Admitted  uint64        // of the others, those that were let in
	Dropped   uint64        // rejected, and not answered, as no answer is expected
	Overloads uint64        // answers of servers that said so
	Retries   uint64        // commands sent again
	Rescued   uint64        // commands that succeeded on a retry
	Backoff   time.Duration // that all commands have waited before retries

	// InFlight is the number of commands in the gates or at the servers, excluding commands that
	// wait for new data.
	InFlight int
	// Peak is the maximum of InFlight since Stats was last called.
	Peak int

	// Tuner is the state of the tuner of the request limiter; nil without one.
	Tuner *tune.Stats
	// Closed counts closed connections by [Reason].
	Closed [Reasons]uint64
	// Endpoints has the commands that were sent to each server.
	Endpoints []upstream.EndpointStats
	// Budget pays for retries. Each server has one; this is that with the least left. It is
	// zero where nothing is retried, or without a limit.
	Budget budget.Stats
}

// Stats returns a snapshot of all listeners at the time now, by name.
func (p *Proxy) Stats(now time.Time) (all []Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.listeners {
		all = append(all, l.stats(now))
	}
	slices.SortFunc(all, func(a, b Stats) int { return strings.Compare(a.Listener, b.Listener) })
	return all
}

func (l *listener) stats(now time.Time) Stats {
	c := &l.counts
	st := l.settings.Load()
	s := Stats{
		Listener: st.config.Name, Connections: l.accept.Stats(now), Resets: l.resets.Counts(), Gate: l.gate.Stats(now),
		Commands: c.commands.Load(), Exempt: c.exempt.Load(), Admitted: c.admitted.Load(), Dropped: c.dropped.Load(), Overloads: c.overloads.Load(),
		Retries: c.retries.Load(), Rescued: c.rescued.Load(), Backoff: time.Duration(c.backoff.Load()),
	}
	s.InFlight, s.Peak = c.working.Count(), c.working.Peak()
	s.Endpoints = l.endpoints.Stats()
	for i := range s.Endpoints {
		if st.budget == nil {
			break
		}
		if b := st.budget.Bucket(s.Endpoints[i].Address).Stats(now); i == 0 || b.Tokens < s.Budget.Tokens {
			s.Budget = b
		}
	}
	if t := l.tuning.Load(); t != nil {
		s.Tuner = new(t.tuner.Stats(now))
	}
	for r := range s.Closed {
		s.Closed[r] = c.closed[r].Load()
	}
	return s
}

// A Count is a value by its name.
type Count struct {
	Name  string
	Value float64
}

// serverStatus returns the counters that a MongoDB server has, too, by their paths in its
// serverStatus.
func (s *Stats) serverStatus() []Count {
	conns, reqs := s.Connections.Rate, s.Gate.RateLimit
	return []Count{
		{"connections.current", float64(s.Connections.Open)},
		{"connections.queuedForEstablishment", float64(conns.Waiting)},
		{"connections.establishmentRateLimit.rejected", float64(conns.RejectedTotal)},
		{"connections.establishmentRateLimit.exempted", float64(conns.ExemptedTotal)},
		{"connections.establishmentRateLimit.interruptedDueToClientDisconnect", float64(conns.AbandonedTotal)},
		{"network.numRequests", float64(s.Commands)},
		{"queues.ingressSessionEstablishment.addedToQueue", float64(conns.QueuedTotal)},
		{"queues.ingressSessionEstablishment.removedFromQueue", float64(conns.QueuedTotal) - float64(conns.Waiting)},
		{"queues.ingressSessionEstablishment.interruptedInQueue", float64(conns.AbandonedTotal)},
		{"queues.ingressSessionEstablishment.averageTimeQueuedMicros", averageQueued(conns)},
		{"queues.ingressSessionEstablishment.attemptedAdmissions", attempted(conns)},
		{"queues.ingressSessionEstablishment.successfulAdmissions", float64(conns.AdmittedTotal)},
		{"queues.ingressSessionEstablishment.rejectedAdmissions", float64(conns.RejectedTotal)},
		{"queues.ingressSessionEstablishment.exemptedAdmissions", float64(conns.ExemptedTotal)},
		{"queues.ingressSessionEstablishment.totalAvailableTokens", max(0, conns.Tokens)},
		{"network.ingressRequestRateLimiter.attemptedAdmissions", attempted(reqs)},
		{"network.ingressRequestRateLimiter.successfulAdmissions", float64(reqs.AdmittedTotal)},
		{"network.ingressRequestRateLimiter.rejectedAdmissions", float64(reqs.RejectedTotal)},
		{"network.ingressRequestRateLimiter.exemptedAdmissions", float64(reqs.ExemptedTotal + s.Exempt)},
		{"network.ingressRequestRateLimiter.totalAvailableTokens", max(0, reqs.Tokens)},
	}
}

func attempted(s ratelimit.Stats) float64 {
	return float64(s.AdmittedTotal+s.RejectedTotal+s.AbandonedTotal) + float64(s.Waiting)
}

func averageQueued(s ratelimit.Stats) float64 {
	left := float64(s.QueuedTotal) - float64(s.Waiting)
	if left <= 0 {
		return 0
	}
	return float64(s.TimeQueued.Microseconds()) / left
}

// IsLevel reports whether a value of Counts is one that can fall.
func IsLevel(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "current", "queuedForEstablishment", "averageTimeQueuedMicros", "totalAvailableTokens":
		return true
	}
	return false
}

// Counts returns the counters that a MongoDB server has, too, by their paths in its serverStatus, and the proxy's own counters, which begin with
// "proxy.".
func (s *Stats) Counts() []Count {
	all := append(s.serverStatus(),
		Count{"proxy.commandsDropped", float64(s.Dropped)},
		Count{"proxy.overloadErrorsReceived", float64(s.Overloads)},
		Count{"proxy.retries", float64(s.Retries)},
		Count{"proxy.retriesSucceeded", float64(s.Rescued)},
		Count{"proxy.backoffSeconds", s.Backoff.Seconds()})
	for r, n := range s.Closed {
		all = append(all, Count{"proxy.connectionsClosed." + strings.ReplaceAll(Reason(r).String(), " ", "_"), float64(n)})
	}
	return all
}
