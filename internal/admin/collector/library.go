package collector

import (
	"errors"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/frequent"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// library is what a Collector has of a program that uses the library. The accounts are of the requests to its servers. A
// program without servers has the calls of its clients in their place.
type library struct {
	serves atomic.Bool   // there is a server
	calls  accounts.Book // of clients
	most   uint64        // offered requests at the last reading
}

// NewLibrary returns an empty Collector for a program that uses the library.
func NewLibrary() *Collector { return &Collector{library: new(library)} }

// Serves says that the program has a server.
func (c *Collector) Serves() { c.library.serves.Store(true) }

// ObserveEnd counts the end of a request to a server: see [ingress.EndObserver].
func (c *Collector) ObserveEnd(e spillway.Event) {
	end := accounts.End{Account: accounts.Upstream(e.Outcome), Criticality: e.Call.Criticality}
	switch {
	case e.Rejected:
		end.Account, end.Reason = accounts.Rejected, accounts.Reason(e.Reason)
	case e.Policy != "":
		end.Account = accounts.GoneWaiting
	case end.Account <= accounts.Late && e.Latency > 0:
		c.latency[telemetry.RoleServer].Add(e.Latency)
		c.answered(telemetry.RoleServer, &e)
	}
	c.accounts.Begin()
	c.accounts.End(end)
}

// call counts the end of a call of a client.
func (x *library) call(e *spillway.Event) {
	end := accounts.End{Account: accounts.Upstream(e.Outcome), Criticality: e.Call.Criticality, Retried: e.Call.Attempt > 0}
	if e.Outcome == spillway.OutcomeAbandoned { // by a policy here, or by the caller
		if r, ok := errors.AsType[*spillway.RejectedError](e.Err); ok {
			end.Account, end.Reason = accounts.Rejected, accounts.Reason(r.Reason)
		}
	}
	x.calls.Begin()
	x.calls.End(end)
}

// read sets the accounts of the requests, or of the calls if there is no server.
func (x *library) read(requests *accounts.Book, t *Totals) {
	calls := x.calls.Read()
	t.Calls, t.Accounts = calls.Sum(), calls
	if x.serves.Load() {
		t.role, t.Accounts = telemetry.RoleServer, requests.Read()
	}
}

// Offer adds the requests in progress to those that have ended: servers report ends only. A request that waits for its
// client is not in progress for a while, so that the sum may fall: then the last one stays.
func (c *Collector) Offer(t *Totals, inProgress int) {
	c.library.most = max(c.library.most, t.Accounts.Offered+uint64(max(0, inProgress)))
	t.Accounts.Offered = c.library.most
}

// backendOf returns the backend of an event of a client, empty for one of a server, whose keys are routes.
func backendOf(e *spillway.Event) string {
	if e.Policy == "retry" || sideOf(e.Policy) == 1 {
		return e.Call.Key[:min(len(e.Call.Key), frequent.MaxKey)]
	}
	return ""
}

// Serves reports whether the Accounts are of requests to a server of the library.
func (t *Totals) Serves() bool { return t.role == telemetry.RoleServer }
