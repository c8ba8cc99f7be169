package spillhttp

import (
	"strconv"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// A wording says why a request is rejected, in each form that an answer has. It is made once.
type wording struct {
	reason  []string // the header; nil: no reason is told
	message []string // of gRPC
	length  []string // of the body
	body    []byte   // one line
	fields  string   // of the header of HTTP/1.1: reason, type and length of the body
}

// The wordings by outcome and, where the client may know it, by reason.
var (
	silentWordings = wordings(func(spillway.Reason, string) string { return "" })
	coarseWordings = wordings(func(_ spillway.Reason, what string) string { return what })
	fullWordings   = wordings(func(reason spillway.Reason, what string) string {
		if reason == spillway.ReasonNone {
			return what
		}
		return reason.String()
	})
)

const lastReason = spillway.ReasonFairShare

// A wordingTable has the wordings of an overload and of a quota that is used up, by reason.
type wordingTable struct {
	overload, quota [lastReason + 1]wording
	gone            wording
}

// wordings returns a table of what name returns for a reason and its coarse name.
func wordings(name func(reason spillway.Reason, coarse string) string) *wordingTable {
	t := &wordingTable{gone: newWording("", "no place became free in time")}
	for reason := range lastReason + 1 {
		t.overload[reason] = newWording(name(reason, "overload"), "overloaded")
		t.quota[reason] = newWording(name(reason, "quota"), "over quota")
	}
	return t
}

func newWording(reason, message string) wording {
	w := wording{message: []string{message}, length: valueZero}
	if reason != "" {
		w.reason = []string{reason}
		w.body = []byte("rejected: " + reason + "\n")
		w.length = []string{strconv.Itoa(len(w.body))}
		w.fields = headerReason + ": " + reason + crlf + "Content-Type: " + valueText[0] + crlf
		if reason != "overload" && reason != "quota" {
			w.message[0] += " (" + reason + ")"
		}
	}
	w.fields += "Content-Length: " + w.length[0] + crlf
	return w
}

// wordingOf returns what the client of a rejected request learns.
func (h *Handler) wordingOf(why *ingress.Rejection) *wording {
	return wordingOf(h.ingress.Trust().Discloses(), why)
}

// wordingOf returns the wording for a client that learns so much.
func wordingOf(told ingress.Reasons, why *ingress.Rejection) *wording {
	table, reason := coarseWordings, spillway.ReasonNone
	switch told {
	case ingress.ReasonsNone:
		table = silentWordings
	case ingress.ReasonsFull:
		table = fullWordings
		if r, ok := why.Err.(*spillway.RejectedError); ok && r.Reason <= lastReason { //nolint:errorlint // gates return it as it is
			reason = r.Reason
		}
	case ingress.ReasonsByBoundary, ingress.ReasonsCoarse:
	}
	switch why.Outcome {
	case spillway.OutcomeOverloaded:
		return &table.overload[reason]
	case spillway.OutcomeOverQuota:
		return &table.quota[reason]
	default:
		return &table.gone
	}
}
