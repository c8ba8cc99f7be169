package upstream

import (
	"errors"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/throttle"
)

// throttles rejects requests that the cluster would probably reject. It decides once for each
// request, and observes the final outcome: an attempt that one endpoint rejects and another
// one serves is no sign of an overloaded cluster. Rejections of one customer that is over its
// quota do not count. Failing routes have separate throttles.
//
// It is an [http.RoundTripper].
type throttles struct {
	next     http.RoundTripper
	name     string // of the cluster
	mode     spillway.Mode
	throttle *throttle.Routes
	observer spillway.Observer
	whole    bool // routes are not told apart
}

func newThrottles(x *config.Cluster, c egress.Config, next http.RoundTripper) (*throttles, error) {
	th, err := throttle.NewRoutes(c.Throttle)
	return &throttles{next: next, name: x.Name, mode: c.ThrottleMode, throttle: th, observer: c.Observer, whole: x.Throttle.WholeCluster}, err
}

func (t *throttles) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.mode == spillway.ModeOff {
		return t.next.RoundTrip(r)
	}
	start, ctx, route := time.Now(), r.Context(), t.route(r)
	call := spillway.Call{Key: t.name, Criticality: spillway.CriticalityFrom(ctx)}
	ticket, err := t.throttle.Admit(start, call, route)
	admitted := err == nil
	if !admitted {
		e := spillway.Rejection(err)
		e.Time, e.Context, e.Call, e.Policy, e.Mode = start, ctx, call, "throttle", t.mode
		t.observer.Observe(e)
		if t.mode == spillway.ModeEnforce {
			if r.Body != nil {
				_ = r.Body.Close() // as a RoundTripper must
			}
			return nil, err
		}
	}
	resp, err := t.next.RoundTrip(r)
	now := time.Now()
	var o spillway.Outcome
	if err != nil {
		o = errorOf(ctx, err, start, now).Outcome
		if by, ok := errors.AsType[*spillway.RejectedError](err); ok && by.Policy == "inflight" {
			t.throttle.Limited(now)
		}
	} else {
		o = read(resp, now).outcome
	}
	t.throttle.Settle(start, now, &ticket, route, o)
	if admitted {
		t.observer.Observe(spillway.Event{
			Time: start, Latency: now.Sub(start), Context: ctx, Call: call, Policy: "throttle", Mode: t.mode, Outcome: o, Err: err,
		})
	}
	return resp, err
}

func (t *throttles) route(r *http.Request) throttle.Route {
	switch {
	case t.whole:
		return throttle.Route{}
	case message.IsGRPC(r):
		return throttle.Route{Name: r.URL.Path} // the method
	default:
		return throttle.Route{Namer: (*routed)(r)}
	}
}

// A routed is a request that names its route.
type routed http.Request

// Route implements [egress.Router].
func (r *routed) Route() string { return spillhttp.DefaultRoute((*http.Request)(r)) }

// RouteHash implements [throttle.Hasher].
func (r *routed) RouteHash(seed maphash.Seed) uint64 {
	return spillhttp.RouteHash((*http.Request)(r), seed)
}
