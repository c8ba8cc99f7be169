package runbook

import "github.com/seed90641741/spillway/shed"

// ByServer is the policy of requests to a server of the library that the gates admitted, and that were not served.
const ByServer = "server"

// OfLibrary returns the entry of a reason in a program that uses the library. Its settings are fields of Config structs.
func OfLibrary(policy, reason, setting string) Entry {
	for _, key := range []string{reason + " " + setting, policy + " " + reason, reason} {
		if e, ok := libraryEntries[key]; ok {
			return e
		}
	}
	return Entry{"Look at the error of the request in /debug/decisions.", nil, "other"}
}

// libraryEntries has the entries by reason and setting, by policy and reason, or by reason alone.
var libraryEntries = map[string]Entry{
	"rate_limit": {
		"Find out who sends more than usual; raise the limit only if the server can do more.",
		[]string{"ingress.Config.RateLimit"}, "rate_limit",
	},
	"quota": {
		"Find the customer in the list of top customers; raise its limit in the Allocator, or ask it to send less.",
		[]string{"ingress.Config.Quota"}, "quota",
	},
	"queue_full": {
		"More requests arrive than the server can do: add capacity, or have clients send less.",
		[]string{"ingress.Config.LimitKey", "shed.Config.MaxWait"}, "queue_full",
	},
	"inflight queue_full": {
		"As many requests are at work as MaxInFlight allows: add capacity, or raise it if the server has the memory.",
		[]string{"ingress.Config.MaxInFlight"}, "queue_full",
	},
	"max_wait " + shed.ByMaxWait: {
		"Requests waited for MaxWait: add capacity, or find out what made the server slow; a deadline lets requests wait longer.",
		[]string{"shed.Config.MaxWait"}, "max_wait",
	},
	"max_wait": {
		"Requests waited for the maximum time: add capacity, or find out what made the server slow.", nil, "max_wait",
	},
	"higher_class": {
		"More requests arrive than the server can do: add capacity. Lower classes are rejected first, as intended.", nil, "higher_class",
	},
	"deadline": {"Compare the timeouts of clients with the p99: allow more time, or make the server faster.", nil, "deadline"},
	"utilization": {
		"The processor or the memory of this process is short: add capacity, or move other work away.",
		[]string{"ingress.Config.Load"}, "utilization",
	},
	"fair_share": {
		"One caller sends more than its share: find it in the top customers or callers, and ask it to send less, or set its quota below its share.",
		[]string{"ingress.Config.Quota"}, "fair_share",
	},
	"throttle": {
		"Find out why the backend rejects or loses calls. The throttle ends by itself when the backend accepts them.",
		[]string{"egress.Config.Throttle"}, "throttle",
	},
	"max_in_flight": {
		"Find out why the backend is slow; raise the limit only if the backend can do more at once.",
		[]string{"egress.Config.MaxInFlight"}, "max_in_flight",
	},
	"budget":      {"Find out why the backend fails. More retries would make it worse.", []string{"egress.Config.Retry"}, "budget"},
	"attempts":    {"All attempts failed: find out why the backend fails.", []string{"egress.Config.Retry"}, "attempts"},
	"retry_after": {"The backend asks for a longer pause than is waited for: send less, or wait.", []string{"egress.Config.Retry"}, "retry_after"},
	"no_time":     {"There is no time for another attempt: allow more time, or make the backend faster.", nil, "no_time"},
	"failed":      {"Look at the log of the backend: it fails, or cannot be reached.", nil, "failed"},
	"overloaded":  {"The backend itself rejects calls: add capacity there, or send less.", nil, "overloaded"},
	"over_quota":  {"The backend says that a customer has used up its quota there: send less, or ask for more.", nil, "over_quota"},

	ByServer + " failed":     {"Look at the log of this program: its handlers fail or panic.", nil, "failed"},
	ByServer + " overloaded": {"Handlers answer that they are overloaded: look at the backends that they call.", nil, "overloaded"},

	"client_gone_waiting": {
		"Clients give up while their requests wait here: shorten the wait, so that they get an answer sooner.",
		[]string{"shed.Config.MaxWait"}, "client_gone_waiting",
	},
	"client_gone_sent": {"Clients give up before the answer: compare their timeout with the time that an answer takes.", nil, "client_gone_sent"},
}

// LibraryCondition is [Condition] for a program that uses the library.
func LibraryCondition(kind string) (e Entry, ok bool) {
	if e, ok = libraryConditions[kind]; ok {
		return e, ok
	}
	return Condition(kind)
}

// libraryConditions has the conditions with other advice than for a proxy.
var libraryConditions = map[string]Entry{
	Unanswered:      {Do: "Look at the log, the goroutines and the processors of this program: its handlers hold all requests.", Section: "answers-are-late"},
	AnswersLate:     {Do: "Find out what made the handlers slow; compare the timeouts of clients with the p99.", Section: "answers-are-late"},
	ClientsGone:     {Do: "Compare the timeout of clients with the p99, and find out what made the handlers slow.", Section: "clients-give-up"},
	UpstreamFails:   {Do: "Look at the log of this program, and at the backends below.", Section: "failed"},
	UpstreamRejects: {Do: "Handlers answer that they are overloaded: add capacity at the backends that they call, or send less.", Section: "overloaded"},
	UpstreamQuota:   {Do: "Send less for that customer, or ask the backend for more.", Section: "over_quota"},
	LimitRejects:    {Do: "Find out in /debug/top who sends more than usual; raise the limit only if the server can do more.", Section: "requests-are-rejected"},
	LimitUnknown: {
		Do:      "Find out why no handler answers in time; set a timeout, or a bound in concurrency.Config.MaxInFlight.",
		Section: "no-request-is-answered",
	},
}

// LibraryTexts returns the texts of the entries for a program that uses the library, for a test of the fields that they name.
func LibraryTexts() (all []string) {
	for _, entries := range []map[string]Entry{libraryEntries, libraryConditions} {
		for _, e := range entries {
			all = append(append(all, e.Do), e.Settings...)
		}
	}
	return all
}
