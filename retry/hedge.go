package retry

import (
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/tokens"
)

// HedgeConfig configures a [Hedge]. Delay or Percentile must be set.
type HedgeConfig struct {
	// Delay is the time without an answer after which a hedge is sent; if Percentile is set, it is
	// the least such time. A shorter Delay sends more hedges, until the budgets limit them. Zero
	// means that only Percentile counts; otherwise it must be at least 1 ms, because below that a
	// hedge costs more than it saves.
	Delay time.Duration
	// Percentile is the share of calls that are answered before a hedge is sent, such as 0.95 ("The
	// Tail at Scale"). The delay follows the latency of recent calls. Zero means that only Delay
	// counts; otherwise it must be 0.5 to 0.999.
	Percentile float64
	// Writes hedges idempotent writes, too. Without it only reads are hedged: the slower of two
	// writes may arrive after a later write of the same object, and undo it.
	Writes bool
}

// A Hedge decides when a call without an answer is sent a second time, to another task, so that the
// quicker answer counts. A hedge is a retry that is paid in advance. It is sent if all of these
// hold:
//
//   - It is due: Delay or the percentile has passed. The percentile is known after 100 calls, 5 of
//     them above the 95th.
//   - The budget of the Hedge pays: hedges are at most 10 % of the calls, as retries are.
//   - The budget of the [Strategy] pays for it as for a retry. Tokens that hedges use are not
//     available for retries.
//   - Hedges help. A hedge costs 1 of 10 tokens, and a hedge that wins returns it. A call that is
//     answered before its hedge is due adds 0.01. If all tasks are slow, hedges only wait behind
//     the calls that they double; then they add 1 % of load after the first 10.
//
// Use one Hedge for the calls to one backend. It is safe for concurrent use. Make one with
// [NewHedge]. Package egress sends hedges.
//
// Source: Dean and Barroso, "The Tail at Scale", hedged requests; gRFC A6, hedging policy.
// Departures: gRPC sends up to 5 attempts, and limits them only by retryThrottling.
type Hedge struct {
	least      time.Duration
	percentile float64

	budget   tokens.Level
	evidence tokens.Level
	mu       sync.Mutex
	samples  int
	estimate float64 // of the percentile, in nanoseconds

	sent, won, rejected uint64 // guarded by mu
}

// These are the constants of a Hedge; its comment has the reasons.
const (
	hedgeSamples  = 100
	hedgeEarned   = tokens.Unit / 10
	hedgeBudget   = 10 * tokens.Unit // as many hedges at once as 100 calls earn
	hedgeEvidence = 10 * tokens.Unit
	hedgeInTime   = tokens.Unit / 100
	// hedgeStep is the largest relative change of the estimate in one step. The estimate follows a
	// latency that has doubled within 15 calls, and one that has halved within 300.
	hedgeStep = 0.05
)

// NewHedge returns a Hedge. An error names the field of c that is out of range.
func NewHedge(c HedgeConfig) (*Hedge, error) {
	switch {
	case c.Delay != 0 && c.Delay < time.Millisecond:
		return nil, invalid.Field("retry", "Delay", c.Delay, "0, or 1ms or more")
	case c.Percentile != 0 && !(c.Percentile >= 0.5 && c.Percentile <= 0.999):
		return nil, invalid.Field("retry", "Percentile", c.Percentile, "0, or 0.5 to 0.999")
	case c.Delay == 0 && c.Percentile == 0:
		return nil, invalid.Field("retry", "Delay", c.Delay, "set if Percentile is not")
	}
	h := &Hedge{least: max(c.Delay, time.Millisecond), percentile: c.Percentile}
	h.evidence.Set(hedgeEvidence)
	return h, nil
}

// Delay returns the time without an answer after which a hedge is due, and whether it is known.
func (h *Hedge) Delay() (d time.Duration, known bool) {
	if h.percentile == 0 {
		return h.least, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.least, time.Duration(h.estimate)), h.samples >= hedgeSamples
}

// Begin counts a call that may be hedged.
func (h *Hedge) Begin() { h.budget.Add(hedgeEarned, hedgeBudget) }

// Answered records the latency of a call that was answered, and whether its hedge was due before.
// Call it at most once for each Begin, and not for a call that failed.
func (h *Hedge) Answered(latency time.Duration, due bool) {
	if !due {
		h.evidence.Add(hedgeInTime, hedgeEvidence)
	}
	if h.percentile == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	x := float64(max(latency, 1))
	h.samples++
	switch {
	case h.samples <= hedgeSamples: // the greatest of them is above all allowed percentiles
		h.estimate = max(h.estimate, x)
	case x > h.estimate:
		h.estimate *= 1 + float64(hedgeStep*h.percentile)
	default:
		h.estimate *= 1 - float64(hedgeStep*(1-h.percentile))
	}
}

// Pay pays for a hedge of call at the time now, and reports whether the hedge may be sent. It takes
// tokens from all budgets or from none. If it returns true, call Settle once.
func (h *Hedge) Pay(now time.Time, s Strategy, call *spillway.Call) bool {
	ok := h.pay(now, s, call)
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok {
		h.sent++
	} else {
		h.rejected++
	}
	return ok
}

// A payer is a Strategy whose budget pays for hedges.
type payer interface {
	payHedge(now time.Time, key string) bool
}

// PaysHedges reports whether the budget of a Strategy pays for hedges. The strategies of this
// package do. Other strategies and wrappers do not, because their budgets are unknown.
func PaysHedges(s Strategy) bool {
	_, ok := s.(payer)
	return ok
}

func (h *Hedge) pay(now time.Time, s Strategy, call *spillway.Call) bool {
	payer, ok := s.(payer)
	if !ok {
		return false
	}
	if _, ok := h.evidence.Take(tokens.Unit); !ok {
		return false
	}
	if _, ok := h.budget.Take(tokens.Unit); !ok {
		h.evidence.Add(tokens.Unit, hedgeEvidence)
		return false
	}
	if !payer.payHedge(now, call.Key) {
		h.evidence.Add(tokens.Unit, hedgeEvidence)
		h.budget.Add(tokens.Unit, hedgeBudget)
		return false
	}
	return true
}

// Settle ends a hedge that was paid for. won says whether its answer was used.
func (h *Hedge) Settle(won bool) {
	if !won {
		return
	}
	h.evidence.Add(tokens.Unit, hedgeEvidence)
	h.mu.Lock()
	h.won++
	h.mu.Unlock()
}

// HedgeStats counts what a [Hedge] has decided since the start.
type HedgeStats struct {
	SentTotal     uint64        // hedges that were sent
	WonTotal      uint64        // hedges whose answer was used
	RejectedTotal uint64        // hedges that were due, but that no budget paid for
	Delay         time.Duration // delay of a hedge now; zero if it is unknown
}

// Stats returns the counts of h and its current delay.
func (h *Hedge) Stats(now time.Time) HedgeStats {
	d, known := h.Delay()
	if !known {
		d = 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return HedgeStats{SentTotal: h.sent, WonTotal: h.won, RejectedTotal: h.rejected, Delay: d}
}

// payHedge takes the cost of a retry out of the budget. A hedge always costs something, even if
// some retries are free, because nothing has failed.
func (e *engine) payHedge(now time.Time, key string) bool {
	_, _, ok := e.budget.Withdraw(now, key, max(e.cost, e.overloadCost))
	return ok
}
