package telemetry

import "strings"

// A Type is the type of a metric.
type Type string

// The types, by their names in the Prometheus text format.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
	Summary   Type = "summary"
)

// A Scope says which observers report a metric.
type Scope string

// The scopes.
const (
	Both    Scope = "library, proxy"
	Library Scope = "library"
	Proxy   Scope = "proxy"
	Quota   Scope = "quota" // spillway quota
)

// A Metric is a row of the table of metrics. All observers make their metrics of it.
type Metric struct {
	Name   string // for Prometheus
	Type   Type
	Unit   string // UCUM, as OpenTelemetry has it
	Labels []string
	Scope  Scope
	Help   string
}

// OfLibrary reports whether observers of the library report m.
func (m *Metric) OfLibrary() bool { return m.Scope == Both || m.Scope == Library }

// OfProxy returns the labels, after Labels, that only the proxy has.
func (m *Metric) OfProxy() []string {
	switch m {
	case &Decisions, &Cost, &CostError, &CostUsed: // the gates of a cluster share what is learned: the listener is empty
		return []string{"cluster"}
	default:
		return nil
	}
}

// OTel returns the name for OpenTelemetry. An exporter that follows the specification
// makes Name of it and of Unit.
func (m *Metric) OTel() string {
	name := strings.TrimPrefix(m.Name, "spillway_")
	for _, suffix := range []string{"_total", "_seconds", "_ratio"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return "spillway." + name
}

var gate = []string{"listener", "cluster"}

// The metrics.
var (
	Decisions = Metric{
		"spillway_decisions_total", Counter, "{decision}",
		[]string{"policy", "criticality", "outcome", "reason", "mode"}, Both,
		"Decisions of each policy: one per request for policies of a server, one per attempt for throttle and inflight, " +
			"one per call for retry. In the mode observe, rejected means that the request would have been rejected.",
	}
	Requests = Metric{
		"spillway_requests_total", Counter, "{request}", []string{"account", "reason", "listener", "cluster", "route"}, Proxy,
		"Requests that have ended, each in one account: served, late, failed, rejected (by the proxy, with the reason), " +
			"rejected_upstream, client_gone_waiting and client_gone_sent. The route is its key in the configuration, which routes can share, or else its " +
			"pattern; it is empty for a request without one, and other after the first 50.",
	}
	Retries = Metric{"spillway_retries_total", Counter, "{retry}", nil, Both, "Attempts after the first of their call."}
	Hedges  = Metric{
		"spillway_hedges_total", Counter, "{hedge}", []string{"result"}, Library,
		"Hedges that were due: won (its answer counted), lost (the answer of the first attempt counted, or both failed), " +
			"rejected (a budget did not pay for it). Missing until the first.",
	}
	Latency = Metric{
		"spillway_latency_seconds", Histogram, "s", []string{"role"}, Both,
		"Role client: time of a call with all its attempts, until the answer begins, of calls that were served or late. " +
			"Role server: time from admission by the shedder to the end, of requests that were served or late.",
	}
	RouteRejected = Metric{
		"spillway_route_rejected_total", Counter, "{request}", []string{"route", "reason"}, Library,
		"Rejections of the routes with most rejections: the route pattern on a server, the backend on a client. " +
			"An empty reason counts all routes that are not listed.",
	}
	CustomerRejected = Metric{
		"spillway_customer_rejected_total", Counter, "{request}", []string{"customer", "criticality", "reason"}, Both,
		"Rejections of the customers with most rejections, by class. An empty reason counts all customers that are not listed. The proxy shows names over " +
			"loopback, to clients with a token and by OTLP; others see only the sum. Its rejections of requests without a customer have an empty customer.",
	}
	ClassRequests = Metric{
		"spillway_class_requests_total", Counter, "{request}", []string{"account", "criticality"}, Proxy,
		"Requests that have ended, by class, in the accounts of spillway_requests_total.",
	}

	Limit = Metric{
		"spillway_limit", Gauge, "{request}", gate, Both,
		"Maximum number of requests in flight, as found by the shedder or configured for calls to the cluster.",
	}
	InFlight    = Metric{"spillway_in_flight", Gauge, "{request}", gate, Both, "Requests in flight, without those in a waiting queue."}
	QueueLength = Metric{"spillway_queue_length", Gauge, "{request}", gate, Both, "Requests in waiting queues."}
	BaseLatency = Metric{"spillway_base_latency_seconds", Gauge, "s", gate, Both, "Latency without a queue, from which the limit is computed."}
	Utilization = Metric{"spillway_utilization_ratio", Gauge, "1", gate, Both, "Utilization of this process, as a share of its target."}
	Throttle    = Metric{
		"spillway_throttle_ratio", Gauge, "1", []string{"cluster"}, Both,
		"Probability that the throttle rejects a call of the most throttled class.",
	}
	Budget = Metric{"spillway_retry_budget_ratio", Gauge, "1", []string{"cluster"}, Both, "Tokens in the retry budget, as a share of its capacity."}

	Cost = Metric{
		"spillway_cost_seconds", Gauge, "s", []string{"listener", "key"}, Both,
		"Processor time of a call as learned, by customer or route. An empty key is the mean of all calls without a cost of their own, which is " +
			"not charged. The gates of a cluster of the proxy share what is learned: the listener is empty there.",
	}
	CostError = Metric{"spillway_cost_error_seconds", Gauge, "s", []string{"listener", "key"}, Both, "Standard error of spillway_cost_seconds."}
	CostUsed  = Metric{
		"spillway_cost_used", Gauge, "1", []string{"listener", "key"}, Both,
		"1 if the quota charges the learned cost, 0 if its error is still too large.",
	}

	InFlightMax = Metric{
		"spillway_in_flight_max", Gauge, "{request}", gate, Proxy,
		"Most requests at once in the last minute, including those in a waiting queue.",
	}
	QueueWait = Metric{
		"spillway_queue_wait_seconds", Summary, "s", gate, Proxy,
		"Time that requests waited for a token of the rate limit or a batch connection.",
	}
	CriticalityMissing = Metric{"spillway_criticality_missing_total", Counter, "{request}", gate, Proxy, "Requests without a criticality."}
	Endpoints          = Metric{
		"spillway_endpoints", Gauge, "{endpoint}", []string{"cluster", "state"}, Proxy,
		"Endpoints that receive requests (up) and that do not (down).",
	}
	Connections  = Metric{"spillway_connections", Gauge, "{connection}", []string{"listener"}, Proxy, "Open connections."}
	ConnRejected = Metric{
		"spillway_connections_rejected_total", Counter, "{connection}", []string{"listener", "reason"}, Proxy,
		"Connections that were reset, by the setting of the listener (connection_rate, max_connections, peers or max_header_bytes), " +
			"or overload: connections kept the processors from serving requests.",
	}
	ClientRequests = Metric{
		"spillway_client_requests", Gauge, "{request}", []string{"listener", "state"}, Proxy,
		"Requests of a listener that are working, or waiting for their client.",
	}
	ClientsEvicted = Metric{
		"spillway_clients_evicted_total", Counter, "{request}", []string{"listener"}, Proxy,
		"Requests and connections that waited for their client and were closed for others.",
	}
	ClientsRejected = Metric{
		"spillway_client_requests_rejected_total", Counter, "{request}", []string{"listener"}, Proxy,
		"Requests rejected because max_requests of the listener was reached.",
	}
	Mongo = Metric{
		"spillway_mongodb", Gauge, "1", []string{"listener", "name"}, Proxy,
		"Connections, queues and tokens of the ingress limiters of a MongoDB listener, by their names in serverStatus.",
	}
	MongoTotal = Metric{
		"spillway_mongodb_total", Counter, "1", []string{"listener", "name"}, Proxy,
		"Counts of the ingress limiters of a MongoDB listener, by their names in serverStatus, and counts of the proxy.",
	}
	TunedLimit = Metric{"spillway_tuned_limit", Gauge, "1", []string{"name"}, Proxy, "A limit that is tuned by signals."}

	UnlistedLimit = Metric{
		"spillway_quota_unlisted_limit", Gauge, "1/s", gate, Both,
		"Cost per second that all customers together may use in this process that the quota does not list (unlisted_total). Missing without this limit.",
	}
	UnlistedRequests = Metric{
		"spillway_quota_unlisted_requests_total", Counter, "{request}", append([]string{"outcome"}, gate...), Both,
		"Requests that were admitted or rejected by unlisted_total, the limit of all customers together that the quota does not list, or by the part of it " +
			"that a customer has. A request that the limit of its customer rejects is in spillway_decisions_total only. In the mode observe, rejected means " +
			"that the request would have been rejected.",
	}
	QuotaShare = Metric{
		"spillway_quota_share", Gauge, "1/s", append([]string{"customer"}, gate...), Both,
		"Cost per second that a listed customer may use in this process now: its limit, or the part of it that a shared quota or the capacity leaves. " +
			"The 20 customers with the fullest buckets have a series in each quota. Missing without a limit. " +
			"The proxy shows names as in spillway_customer_rejected_total.",
	}
	QuotaUse = Metric{
		"spillway_quota_use", Gauge, "1/s", append([]string{"customer"}, gate...), Both,
		"Cost per second that a listed customer was charged in this process, over the last 10 s, of the customers in spillway_quota_share.",
	}
	QuotaGrace = Metric{
		"spillway_quota_grace_seconds", Gauge, "s", []string{"quota"}, Both,
		"Time until this process grants the limits of a shared quota divided by its number of tasks, if no new levels come. " +
			"It falls from the setting grace; 0 where they are divided.",
	}
	QuotaRate = Metric{
		"spillway_quota_rate", Gauge, "1/s", []string{"quota", "customer"}, Proxy,
		"Cost per second that a listed customer may use in all proxies that share the quota. The 20 customers with most debt have a series.",
	}
	QuotaDebt = Metric{
		"spillway_quota_debt_seconds", Gauge, "s", []string{"quota", "customer"}, Proxy,
		"Debt of a listed customer in all proxies, as the time that its rate takes to pay it. The 20 customers with most debt have a series.",
	}
	QuotaMarginal = Metric{
		"spillway_quota_marginal_class", Gauge, "1", []string{"quota", "customer"}, Proxy,
		"Criticality that is not admitted in full in all proxies, from 0 for SHEDDABLE to 3 for CRITICAL_PLUS; lower ones are rejected. " +
			"-1 if all are admitted. The 20 customers with most debt have a series.",
	}
	QuotaAge = Metric{
		"spillway_quota_levels_age_seconds", Gauge, "s", []string{"quota"}, Both,
		"Time since the last new levels of a shared quota. Missing until the first.",
	}
	QuotaLeader   = Metric{"spillway_quota_leader", Gauge, "1", []string{"quota"}, Both, "1 if this process computes the levels of a shared quota, otherwise 0."}
	QuotaTasks    = Metric{"spillway_quota_tasks", Gauge, "{task}", []string{"quota"}, Both, "Tasks that share a quota, by the last levels; 0 without any."}
	QuotaConflict = Metric{
		"spillway_quota_config_conflict", Gauge, "1", []string{"quota"}, Both,
		"1 if this process has other limits than the leader, or leads and another task has, otherwise 0.",
	}
	QuotaSyncs = Metric{
		"spillway_quota_syncs_total", Counter, "{sync}", []string{"quota", "result"}, Both,
		"Exchanges of reports and levels: ok, error, and fenced where another task led meanwhile.",
	}

	QuotaEnvoys = Metric{
		"spillway_quota_envoys", Gauge, "{client}", []string{"quota"}, Quota,
		"Envoys that have a stream of rate_limit_quota.v3 to this server.",
	}
	QuotaBuckets = Metric{
		"spillway_quota_buckets", Gauge, "{bucket}", []string{"quota", "customers"}, Quota,
		"Buckets of Envoys with a stream: of listed customers, and of all others (unlisted).",
	}
	QuotaCalls = Metric{
		"spillway_quota_calls_total", Counter, "{request}", []string{"quota", "criticality", "outcome"}, Quota,
		"Requests that Envoys have admitted and rejected, as they report them, and that ratelimit.v3 has answered.",
	}
	QuotaReports = Metric{
		"spillway_quota_reports_total", Counter, "{report}", []string{"quota", "result"}, Quota,
		"Reports of buckets: ok, and overflow for buckets beyond the limits on buckets, which share one assignment. " +
			"invalid counts streams and messages that were rejected: another domain, too many streams, or not valid.",
	}

	Overrides = Metric{
		"spillway_overrides", Gauge, "{setting}", nil, Proxy,
		"Settings that were changed over the API and differ from the configuration.",
	}
	Notice = Metric{
		"spillway_notice", Gauge, "{notice}", []string{"kind"}, Proxy,
		"Notices of the dashboard: conditions that an operator should know about, even if requests succeed.",
	}
	LogLost = Metric{
		"spillway_log_lines_lost_total", Counter, "{line}", []string{"log"}, Proxy,
		"Lines of the log (program) and of the access log (access) that were lost because they could not be written, or not fast enough.",
	}
	Ready = Metric{"spillway_ready", Gauge, "1", nil, Proxy, "1 if clients can be served, otherwise 0."}
)

// Metrics is the table of all metrics.
var Metrics = []*Metric{
	&Decisions, &Requests, &Retries, &Hedges, &Latency, &RouteRejected, &CustomerRejected, &ClassRequests,
	&Limit, &InFlight, &QueueLength, &BaseLatency, &Utilization, &Throttle, &Budget, &Cost, &CostError, &CostUsed,
	&InFlightMax, &QueueWait, &CriticalityMissing, &Endpoints, &Connections, &ConnRejected,
	&ClientRequests, &ClientsEvicted, &ClientsRejected, &Mongo, &MongoTotal, &TunedLimit,
	&UnlistedLimit, &UnlistedRequests, &QuotaShare, &QuotaUse,
	&QuotaRate, &QuotaDebt, &QuotaMarginal, &QuotaAge, &QuotaGrace, &QuotaLeader, &QuotaTasks, &QuotaConflict, &QuotaSyncs,
	&QuotaEnvoys, &QuotaBuckets, &QuotaCalls, &QuotaReports, &Overrides,
	&Notice, &LogLost, &Ready,
}

// LabelValues returns the values of the labels that have a fixed set of them, by label.
func LabelValues() map[string][]string {
	all := map[string][]string{
		"policy": Policies[:], "state": {"up", "down", "working", "waiting"}, "mode": {"enforce", "observe"},
		"criticality": {"SHEDDABLE", "SHEDDABLE_PLUS", "CRITICAL", "CRITICAL_PLUS"}, "role": {"client", "server"},
		"kind": Notices, "log": {"program", "access"}, "customers": {"listed", "unlisted"},
	}
	seen := make(map[string]bool)
	add := func(label, value string) {
		if at := label + " " + value; !seen[at] {
			seen[at] = true
			all[label] = append(all[label], value)
		}
	}
	for k := range Kind(Kinds) {
		add("outcome", k.Outcome())
		add("reason", k.Reason())
	}
	return all
}
