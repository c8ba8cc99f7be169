package spillhttp

import (
	"strconv"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// A wording is the text of a rejection in each form that an answer needs. Wordings are made once.
type wording struct {
	reason  []string // header value; nil: the client does not learn the reason
	message []string // status message of gRPC
	length  []string // of body, as a header value
	body    []byte   // one line of text
	fields  string   // header lines of HTTP/1.1: reason, type and length of body
}

// wordings are the texts for one outcome, indexed by the reason. Index [spillway.ReasonNone] has
// the coarse reason, and index noReason none.
type wordings [noReason + 1]wording

const (
	lastReason = spillway.ReasonFairShare
	noReason   = lastReason + 1
)

var (
	overloadWordings = newWordings("overload", "overloaded")
	quotaWordings    = newWordings("quota", "over quota")
	goneWording      = newWording("", "no place became free in time")
)

func newWordings(coarse, message string) *wordings {
	w := new(wordings)
	for reason := range noReason {
		w[reason] = newWording(reason.String(), message)
	}
	w[spillway.ReasonNone] = newWording(coarse, message)
	w[noReason] = newWording("", message)
	return w
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

// wordingOf returns the text of a rejection, with as much of the reason as Trust discloses.
func (h *Handler) wordingOf(why *ingress.Rejection) *wording {
	return wordingOf(h.ingress.Trust().Discloses(), why)
}

// wordingOf returns the text of a rejection, with as much of the reason as told allows.
func wordingOf(told ingress.Reasons, why *ingress.Rejection) *wording {
	reason := spillway.ReasonNone
	if told == ingress.ReasonsNone {
		reason = noReason
	}
	if told == ingress.ReasonsFull {
		if e, ok := why.Err.(*spillway.RejectedError); ok && e.Reason <= lastReason { //nolint:errorlint // gates return it as it is
			reason = e.Reason
		}
	}
	switch why.Outcome {
	case spillway.OutcomeOverloaded:
		return &overloadWordings[reason]
	case spillway.OutcomeOverQuota:
		return &quotaWordings[reason]
	default:
		return &goneWording
	}
}

// lengthOf returns the length in bytes of the body of a rejection for a reason.
func (h *Handler) lengthOf(reason spillway.Reason) int {
	why := ingress.Rejection{Outcome: spillway.OutcomeOverloaded, Err: &spillway.RejectedError{Reason: reason}}
	if reason == spillway.ReasonQuota {
		why.Outcome = spillway.OutcomeOverQuota
	}
	return len(h.wordingOf(&why).body)
}
