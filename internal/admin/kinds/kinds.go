// Package kinds describes reasons and kinds of decisions for people.
package kinds

import (
	"strings"

	"github.com/seed90641741/spillway/internal/telemetry"
)

// words are the descriptions of reasons, by policy and reason, or by reason alone.
var words = map[string]string{
	"rate_limit":          "the request rate was above the limit",
	"quota":               "the customer has used up its quota",
	"queue_full":          "the queue was full",
	"shed queue_full":     "the waiting queue was full of requests no less critical",
	"higher_class":        "more critical requests were rejected recently",
	"max_wait":            "the request waited for as long as it may, by its deadline or by max_wait",
	"deadline":            "no answer before the deadline",
	"utilization":         "utilization was above the threshold of the class",
	"fair_share":          "the caller asked for more than its fair share",
	"throttle":            "the upstream accepts too few of the requests that it receives",
	"max_in_flight":       "the maximum number of requests was in flight",
	"budget":              "failed, and the retry budget did not pay for another attempt",
	"attempts":            "failed, and the maximum number of attempts was made",
	"retry_after":         "failed, and the upstream asked for a longer wait than is allowed",
	"no_time":             "failed, and another attempt would have come too late",
	"failed":              "the upstream failed or could not be reached",
	"overloaded":          "the upstream itself was overloaded",
	"over_quota":          "the upstream says that the customer has used up its quota",
	"client_gone":         "the client went away",
	"client_gone_waiting": "the client left while the request waited here",
	"client_gone_sent":    "the client left before the upstream had answered",
	"max_requests":        "the listener had as many requests at once as it may have",
	"no_route":            "no route matches the request",
	"draining":            "the proxy is ending",
	"bad_request":         "the body is longer than allowed, or the method is CONNECT",
	"other_policy":        "another policy rejected the request",
	"other":               "rejected by another policy",
	"shed other":          "the server was overloaded",
	"retry other":         "rejected",
	"":                    "admitted, and answered",
}

// Words returns the description of a kind.
func Words(k telemetry.Kind) string {
	if k.Reason() == "deadline" && k.Code() > telemetry.Rejected {
		return "the deadline was closer than the fastest recent response"
	}
	if text, ok := words[k.Policy()+" "+k.Reason()]; ok {
		return text
	}
	return words[k.Reason()]
}

// Shown reports whether a page lists a kind among the reasons: the end of a request that
// all gates admitted is reported by the retry policy, or by the queue of a batch cluster.
func Shown(k telemetry.Kind) bool {
	switch c := k.Code(); c {
	case telemetry.Admitted, telemetry.Gone, telemetry.Elsewhere:
		return false
	default:
		return c >= telemetry.Rejected || k.Policy() == "retry" || k.Policy() == "batch"
	}
}

// OfReason returns the description of a reason of the proxy itself.
func OfReason(reason string) string { return words[reason] }

// LibraryWords is Words for a program that uses the library: it calls backends.
func LibraryWords(k telemetry.Kind) string { return ofBackend.Replace(Words(k)) }

var ofBackend = strings.NewReplacer("the upstream", "the backend")

// OfServer returns the description of the end of a request that the gates of a server of the library admitted.
func OfServer(reason string) string {
	switch reason {
	case "failed":
		return "a handler failed or panicked"
	case "overloaded":
		return "a handler answered that it is overloaded, or that a quota is used up"
	case "client_gone_sent":
		return "the client left before the handler had answered"
	default:
		return words[reason]
	}
}
