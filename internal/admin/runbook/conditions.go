package runbook

import "github.com/seed90641741/spillway/internal/telemetry"

// Conditions that the banner of the dashboard names, in addition to the kinds of notices in package
// telemetry.
const (
	Unanswered      = "unanswered"
	Unreachable     = "upstream_unreachable"
	ClientsRetry    = "clients_retry"
	ClientsGone     = "clients_gone"
	AnswersLate     = "answers_late"
	UpstreamFails   = "upstream_fails"
	UpstreamRejects = "upstream_rejects"
	UpstreamQuota   = "upstream_over_quota"
	LimitRejects    = "limit_rejects"
	LimitUnknown    = "limit_unknown"
	Overloaded      = "overloaded"
)

// Condition returns what to do about a condition. It reports false for an unknown one.
func Condition(kind string) (e Entry, ok bool) {
	e, ok = conditions[kind]
	return e, ok
}

// conditions has an entry for each condition and each kind of notice. The text of a notice says
// what to do.
var conditions = map[string]Entry{
	Unanswered:      {Do: "Look at the log and the processors of the service: it holds all requests.", Section: "answers-are-late"},
	Unreachable:     {Do: "Start the service, renew its certificate, or correct clusters[].endpoints.", Section: "endpoints-are-down"},
	ClientsRetry:    {Do: "Find the callers that retry in /debug/top; have them retry less, with a budget.", Section: "attempts"},
	ClientsGone:     {Do: "Compare the timeout of clients with the p99, and find out what made the service slow.", Section: "clients-give-up"},
	AnswersLate:     {Do: "Find out what made the service slow; compare the timeouts of routes with the p99.", Section: "answers-are-late"},
	UpstreamFails:   {Do: "Look at the endpoints in /debug/limits and at the log of the service.", Section: "failed"},
	UpstreamRejects: {Do: "The service itself is overloaded: add capacity there, or send less.", Section: "overloaded"},
	UpstreamQuota:   {Do: "Send less for that customer, or ask the service for more.", Section: "over_quota"},
	LimitRejects:    {Do: "Find out in /debug/top who sends more than usual; raise the limit only if the service can do more.", Section: "requests-are-rejected"},
	LimitUnknown: {
		Do: "Find out in the log of the service why it answers no request in time. If it works for clients that have left, set `routes[].timeout`; " +
			"if it gets too much at once, `clusters[].shed.max_in_flight`.",
		Section: "no-request-is-answered",
	},
	Overloaded: {Do: "Add capacity, or have clients send less; /debug/top says who sends most.", Section: "requests-are-rejected"},

	telemetry.NoticeStarved:   {Section: "the-process-lacks-processor-time"},
	telemetry.NoticeEndpoints: {Section: "endpoints-are-down"},
	telemetry.NoticeMongoDB:   {Section: "mongodb-servers-are-unreachable"},
	telemetry.NoticeExpired:   {Section: "a-certificate-expires"},
	telemetry.NoticeExpires:   {Section: "a-certificate-expires"},
	telemetry.NoticeReload:    {Section: "a-reload-failed"},
	telemetry.NoticeLog:       {Section: "a-log-is-not-written"},
	telemetry.NoticeClock:     {Section: "the-clock-was-set"},
	telemetry.NoticeLimit:     {Section: "a-limit-is-unusual"},
	telemetry.NoticeSlow:      {Section: "requests-are-slow"},
	telemetry.NoticeResets:    {Section: "connections-are-reset"},

	telemetry.NoticeControlPlane: {Section: "the-control-plane-is-lost"},

	telemetry.NoticeQuotaAway:     {Section: "a-quota-is-not-shared"},
	telemetry.NoticeQuotaLeader:   {Section: "a-quota-is-not-shared"},
	telemetry.NoticeQuotaConflict: {Section: "a-quota-is-not-shared"},
}
