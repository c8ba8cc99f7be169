package telemetry

// Advice returns what an operator can do about decisions of a kind: one sentence, for
// people. It is empty for calls that were served.
func Advice(k Kind) string { return advice[k.Reason()] }

// advice has one entry for each value of the label reason.
var advice = map[string]string{
	"rate_limit":    "send fewer requests, spread bursts, or raise the rate limit if the server can do more",
	"quota":         "find out what the customer sends; raise its quota, or have it send less",
	"throttle":      "find out why the backend rejects or loses calls; the throttle ends by itself when it accepts them",
	"max_in_flight": "find out why the backend is slow; raise the limit only if it can do more at once",
	"queue_full":    "more requests arrive than the server can do: add capacity, or have clients send less",
	"max_wait":      "more requests arrive than the server can do: add capacity, or have clients send less",
	"deadline":      "have clients allow more time, or make the server faster",
	"higher_class":  "more requests arrive than the server can do: add capacity; this class is rejected first",
	"utilization":   "the processor or memory of this process is short: add capacity, or have clients send less",
	"fair_share":    "one caller sends more than its share: ask it to send less, or give it a quota below its share",
	"budget":        "most calls fail, so that retries would make it worse: find out why the backend fails",
	"attempts":      "all attempts failed: find out why the backend fails",
	"retry_after":   "the backend asked for a longer pause than MaxRetryAfter: send less, or wait",
	"no_time":       "the next attempt would come too late: allow more time, or make the backend faster",
	"failed":        "find out why the backend failed or could not be reached",
	"overloaded":    "the backend is overloaded: add capacity there, or send less",
	"over_quota":    "the backend says that this customer has used up its quota: send less, or ask for more",
	"client_gone":   "clients give up before the answer: compare their timeout with the latency",
	"other_policy":  "see the rejection by the other policy",
	"other":         "see the error of the call",
}
