package httpproxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/turns"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// A gateKey identifies a gate by the names of its listener and its cluster.
type gateKey struct{ listener, cluster string }

// A gate decides which requests of a listener a cluster gets.
type gate struct {
	key      gateKey
	ingress  *ingress.Server
	handler  *spillhttp.Handler
	cluster  *cluster
	settings atomic.Pointer[settings] // of the listener
	forward  *httputil.ReverseProxy
	observer spillway.Observer
	users    resources.Users
	requests atomic.Uint64

	admitted, unlabelled atomic.Uint64 // requests
	counted              uint64        // of admitted, by the tuning of the cluster; guarded by the lock of the proxy
}

func (p *Proxy) newGate(key gateKey, x *cluster, c ingress.Config) (*gate, error) {
	server, err := ingress.New(c)
	if err != nil {
		return nil, err
	}
	g := &gate{key: key, ingress: server, cluster: x, observer: c.Observer}
	g.forward = p.newForward(g)
	g.handler, err = spillhttp.NewHandler(http.HandlerFunc(g.serve), spillhttp.HandlerConfig{
		Ingress: server, Classify: g.classify, Exempt: g.exempt,
	})
	if err != nil {
		_ = server.Close() // what is wrong is said by err
		return nil, err
	}
	for _, missing := range server.Missing() {
		p.with.Logger.Debug("a measure of load is missing", "error", missing)
	}
	return g, nil
}

// classify returns the call of a request: class, customer, key and deadline by its route.
func (g *gate) classify(r *http.Request) (call spillway.Call) {
	if route := g.settings.Load().table.Match(r); route != nil {
		call.Criticality, call.Customer, call.Key = route.Class, route.Customer(r), route.Name
		clients.Charge(r, g.ingress, call.Customer)
		if t := route.Config.Timeout; t > 0 {
			call.Deadline = time.Now().Add(t)
		}
	}
	return call
}

// exempt reports whether a request bypasses the gate. Requests for another gate do, because a
// connection asks before the route is known, and so do all requests while the gate is being
// closed.
func (g *gate) exempt(r *http.Request) bool {
	s := g.settings.Load()
	if s == nil || g.users.Retired() {
		return true
	}
	if s.draining.Load() && accountingOf(r.Context()) == nil {
		return true // a connection cannot say that it ends: the server is to answer
	}
	to := s.match(r)
	return to == nil || to.gate != g || to.Config.Exempt || s.internal && spillhttp.DefaultExempt(r)
}

// batchBody is the longest body that is read before its request gets its turn in front of a
// batch cluster. There are few turns, so that clients must not hold them as they send.
const batchBody = 1 << 20

func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	g.admitted.Add(1)
	g.charge(r)
	a := accountingOf(r.Context())
	x := a.exchange
	if deadline, ok := r.Context().Deadline(); ok {
		a.timer = newTimer(r.Context(), a.before, deadline)
		defer a.timer.end()
		r = r.WithContext(a.timer)
		if !x.Whole() {
			defer x.Until(a.timer)()
		}
	}
	if q := g.cluster.Current().Queue; q != nil {
		if err := x.Body().ReadAhead(r, batchBody); err != nil {
			answer(w, r, err, 0)
			return
		}
		customer := a.to.Customer(r)
		task := spillway.TaskFrom(r.Context())
		turn := turns.Request{
			Criticality: spillway.CriticalityFrom(r.Context()),
			Progress:    task.Progress(),
			Customer:    cmp.Or(customer, x.Network()),      // customers take turns, and addresses where there are none
			Incoming:    !x.Whole() && r.ContentLength != 0, // by HTTP/2, a request without a body has one, too
		}
		if s := g.settings.Load(); s != nil && s.internal { // at an edge it is random, and says nothing
			turn.Level = task.Level()
		}
		if err := g.turn(r.Context(), q, turn, customer); err != nil {
			answer(w, r, err, g.comeBack(err))
			return
		}
		defer q.Leave(turn)
	}
	a.markSent()
	g.cluster.pool.Enter(x)
	defer g.cluster.pool.Leave(x)
	delete(w.Header(), message.RequestID) // the answer of the upstream gets it
	out := x.Streaming(w)
	defer a.broken(r.Context(), out)
	g.forward.ServeHTTP(out, r)
}

// comeBack returns the Retry-After for a request that a policy outside of the gate rejected
// with err: not before that policy expects to admit it. The value is jittered so that clients
// that were rejected together do not retry together.
func (g *gate) comeBack(err error) time.Duration {
	rejected, ok := errors.AsType[*spillway.RejectedError](err)
	if ok && rejected.RetryAfter > 0 {
		return time.Duration(float64(rejected.RetryAfter) * (1 + rand.Float64()))
	}
	u := g.cluster.Current()
	if ok && rejected.Policy == "throttle" { // all endpoints may have asked to be left alone
		if wait := u.Wait(time.Now(), rejected.Criticality); wait > 0 {
			return wait + time.Duration(float64(wait)*rand.Float64()/10)
		}
	}
	after := cmp.Or(u.Config.RetryAfter, time.Second)
	return time.Duration(float64(after) * (0.5 + rand.Float64()))
}

// turn waits for the turn of a request. It reports the outcome of requests that end in the
// queue: deadline exceeded or client gone. Other policies report the outcome of the rest.
func (g *gate) turn(ctx context.Context, q *turns.Queue, turn turns.Request, customer string) error {
	now := time.Now()
	call := spillway.Call{Key: g.key.cluster, Customer: customer, Criticality: turn.Criticality, Level: turn.Level, Progress: turn.Progress}
	err := q.Enter(ctx, turn)
	e := spillway.Event{Outcome: spillway.OutcomeServed, Err: err}
	switch {
	case errors.Is(err, spillway.ErrRejected):
		e = spillway.Rejection(err)
	case errors.Is(err, context.DeadlineExceeded):
		e.Outcome = spillway.OutcomeTimedOut
	case err != nil:
		e.Outcome = spillway.OutcomeAbandoned
	}
	e.Time, e.Context, e.Call, e.Policy = now, ctx, call, "batch"
	g.observer.Observe(e)
	return err
}

// A cluster is where requests are sent, and the places that they have there.
type cluster struct {
	*upstream.Cluster

	pool clients.Pool
}

// replace is Replace, and has the places follow.
func (x *cluster) replace(ctx context.Context, logger *slog.Logger, u *upstream.Version) {
	x.Replace(ctx, logger, u)
	x.pool.Limit(u.Places())
}
