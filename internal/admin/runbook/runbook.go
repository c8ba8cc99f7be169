// Package runbook says what an operator does about each reason for which requests are rejected
// or lost: one sentence, the setting to change, and the section of docs/runbook.md.
package runbook

import "github.com/seed90641741/spillway/shed"

// URL is the address of the runbook.
const URL = "https://github.com/seed90641741/spillway/blob/main/docs/runbook.md"

// An Entry is what to do about a reason.
type Entry struct {
	Do string // one sentence
	// Settings are the fields of the configuration to look at, of clusters, routes and listeners,
	// and of MongoDB listeners. [] is any name. Empty: there is no field.
	Settings []string
	Section  string // of the runbook: the anchor of its heading
}

// Link returns the address of the section.
func (e Entry) Link() string { return URL + "#" + e.Section }

// NoCustomer is the setting of a rejection by the quota of the requests without a customer.
const NoCustomer = "no_customer"

// Of returns the entry of a reason. Some reasons mean something else for one policy, or for one of
// its settings; empty is none. The entry of an unknown reason says how to find the cause.
func Of(policy, reason, setting string) Entry {
	for _, key := range []string{reason + " " + setting, policy + " " + reason, reason} {
		if e, ok := entries[key]; ok {
			return e
		}
	}
	return entries["other"]
}

// entries has the entries by reason and setting, by policy and reason, or by reason alone.
var entries = map[string]Entry{
	"max_wait " + shed.ByDeadline: {
		"Requests waited until their deadline allowed no more: add capacity, or allow more time by the timeout of the route or the client.",
		[]string{"routes[].timeout"}, "max_wait",
	},
	"max_wait " + shed.ByMaxWait: {
		"Requests waited for max_wait: add capacity, or find out what made the service slow; a deadline lets requests wait longer.",
		[]string{"clusters[].shed.max_wait", "mongo[].shed.max_wait"}, "max_wait",
	},
	"max_wait " + shed.ByBurst: {
		"Requests waited 100 ms for a processor of this host: add capacity, or move other work away.",
		[]string{"clusters[].shed.max_wait", "mongo[].shed.max_wait"}, "max_wait",
	},
	"max_wait " + shed.ByLatency: {
		"Requests waited for 8 usual latencies, or 1 s: add capacity, or have clients send less. No setting changes this wait.", nil, "max_wait",
	},
	"max_wait " + shed.ByQueue: {
		"An overload lasts, so the queue is short: add capacity, or have clients send less. No setting changes this wait.", nil, "max_wait",
	},
	"quota unlisted_total": {
		"The customers that are not listed by name have used up unlisted_total together: list the important ones, or raise it.",
		[]string{"clusters[].quota.unlisted_total", "clusters[].quota.customers", "mongo[].quota.unlisted_total", "mongo[].quota.customers"}, "quota",
	},
	"quota capacity": {
		"All customers together have used up the capacity of the quota: raise it only if the service can do more.",
		[]string{"clusters[].quota.capacity", "mongo[].quota.capacity"}, "quota",
	},
	"quota " + NoCustomer: {
		"Requests without a customer share one default_limit: set routes[].customer, or have the clients send what it asks for.",
		[]string{"routes[].customer", "clusters[].quota.default_limit", "mongo[].quota.default_limit"}, "quota",
	},
	"rate_limit": {
		"Find out who sends more than usual; raise the limit only if the service can do more.",
		[]string{"clusters[].rate_limit.rate", "mongo[].parameters.ingressRequestAdmissionRatePerSec"}, "rate_limit",
	},
	"quota": {
		"Find the customer in the list of top customers; raise its quota, or ask it to send less.",
		[]string{"clusters[].quota", "mongo[].quota"}, "quota",
	},
	"queue_full": {
		"More requests arrive than the service can do: add capacity, or have clients send less.",
		[]string{"routes[].key", "clusters[].shed.max_wait", "mongo[].shed.max_wait"}, "queue_full",
	},
	"batch queue_full": {
		"Requests arrive faster than the batch connections serve them: add connections, or have clients send less.",
		[]string{"clusters[].batch.queue"}, "batch-queue_full",
	},
	"max_wait": {
		"Requests waited for the maximum time, by their deadline or by max_wait: add capacity, or find out what made the service slow.",
		[]string{"routes[].timeout", "clusters[].shed.max_wait", "mongo[].shed.max_wait"}, "max_wait",
	},
	"batch max_wait": {
		"Requests wait too long for a batch connection: add connections, or have clients send less.",
		[]string{"clusters[].batch.max_wait"}, "batch-max_wait",
	},
	"higher_class": {
		"More requests arrive than the service can do: add capacity. Lower classes are rejected first, as intended.",
		[]string{"routes[].criticality", "mongo[].classes"}, "higher_class",
	},
	"deadline": {
		"Compare the timeouts of clients and routes with the p99: allow more time, or make the service faster.",
		[]string{"routes[].timeout"}, "deadline",
	},
	"utilization": {
		"The processor or the memory of this host is short: add capacity, or move other work away.",
		[]string{"clusters[].shed.load", "mongo[].shed.load"}, "utilization",
	},
	"fair_share": {
		"One client sends more than its share: find it in the top customers or callers, and ask it to send less, or set its quota below its share.",
		[]string{"clusters[].quota", "mongo[].quota"}, "fair_share",
	},
	"throttle": {
		"Find out why the cluster rejects or loses requests. The throttle ends by itself when the cluster accepts them.",
		[]string{"clusters[].throttle"}, "throttle",
	},
	"max_in_flight": {
		"Find out why the cluster is slow; raise the limit only if the cluster can do more at once.",
		[]string{"clusters[].inflight.max_in_flight"}, "max_in_flight",
	},
	"max_requests": {
		"Clients hold more requests open than the listener allows: find the top callers, or raise the limit and the limit on open files.",
		[]string{"listeners[].max_requests"}, "max_requests",
	},
	"no_route": {
		"Compare the paths in /debug/decisions with the routes; a new path needs a route.",
		[]string{"routes"}, "no_route",
	},
	"draining": {
		"Nothing, if the proxy is meant to end. Otherwise find out who sent SIGTERM.",
		[]string{"drain_timeout"}, "draining",
	},
	"bad_request": {
		"Find the caller: its body is longer than allowed, or it asks for a tunnel.",
		[]string{"listeners[].max_body_bytes"}, "bad_request",
	},
	"budget": {
		"Find out why the cluster fails. More retries would make it worse.",
		[]string{"clusters[].retry.ratio", "mongo[].retry.budget"}, "budget",
	},
	"attempts": {
		"All attempts failed: find out why the cluster fails.",
		[]string{"clusters[].retry.max_attempts", "mongo[].retry.max_retries"}, "attempts",
	},
	"retry_after": {
		"The cluster asks for a longer pause than is waited for: send less, or wait.",
		[]string{"clusters[].retry.max_retry_after", "mongo[].retry.max_retry_after"}, "retry_after",
	},
	"no_time": {
		"There is no time for another attempt: allow more time, or make the service faster.",
		[]string{"routes[].timeout"}, "no_time",
	},
	"failed": {
		"Look at the endpoints in /debug/limits and at the log of the service.",
		[]string{"clusters[].endpoints", "mongo[].endpoints"}, "failed",
	},
	"overloaded": {
		"The service itself rejects requests: add capacity there, or send less.",
		[]string{"clusters[].shed", "mongo[].shed"}, "overloaded",
	},
	"over_quota": {
		"The service says that a customer has used up its quota there: send less, or ask for more.",
		[]string{"clusters[].quota", "mongo[].quota"}, "over_quota",
	},
	"client_gone": {
		"Clients give up before the answer: compare their timeout with the time that an answer takes.",
		[]string{"routes[].timeout"}, "client_gone_sent",
	},
	"client_gone_waiting": {
		"Clients give up while their requests wait here: shorten the wait, so that they get an answer sooner.",
		[]string{"clusters[].shed.max_wait", "clusters[].batch.max_wait", "mongo[].shed.max_wait"}, "client_gone_waiting",
	},
	"client_gone_sent": {
		"Clients give up before the service answers: compare their timeout with the time that the service takes, and make it faster.",
		[]string{"routes[].timeout"}, "client_gone_sent",
	},
	"other_policy": {
		"See the rejection by the other policy in /debug/decisions.",
		nil, "other",
	},
	"other": {
		"Look the request up in /debug/decisions, which has the text of the error.",
		nil, "other",
	},
}
