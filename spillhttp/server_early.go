package spillhttp

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// early decides on a request when only its head has come. Ctx is for the event.
func (h *Handler) early(ctx *headContext, now time.Time, a *arrival) ingress.Rejection {
	ctx.head.BodyLength = h.bodyLength
	refusal := h.ingress.RejectAt(ctx, now, &a.call, &a.caller)
	if refusal.Outcome == spillway.OutcomeOverloaded {
		h.busy()
	} else {
		h.looks.Add(-1)
	}
	return refusal
}

// lengthOf returns the length of the body with which a request is rejected for a reason.
func (h *Handler) lengthOf(reason spillway.Reason) int {
	outcome := spillway.OutcomeOverloaded
	if reason == spillway.ReasonQuota {
		outcome = spillway.OutcomeOverQuota
	}
	why := ingress.Rejection{Outcome: outcome, Err: &spillway.RejectedError{Reason: reason}}
	return len(wordingOf(h.ingress.Trust().Discloses(), &why).body)
}
