package httpproxy

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/turns"
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
	users    users
	requests atomic.Uint64

	admitted, unlabelled atomic.Uint64 // requests
}

func (p *Proxy) newGate(key gateKey, x *cluster, c ingress.Config) (*gate, error) {
	server, err := ingress.New(c)
	if err != nil {
		return nil, err
	}
	g := &gate{key: key, ingress: server, cluster: x, observer: p.observer}
	g.forward = p.newForward(g)
	g.handler, err = spillhttp.NewHandler(http.HandlerFunc(g.serve), spillhttp.HandlerConfig{
		Ingress: server, Classify: g.classify, Exempt: g.exempt,
	})
	if err != nil {
		_ = server.Close() // what is wrong is said by err
		return nil, err
	}
	for _, missing := range server.Missing() {
		p.logger.Debug("a measure of load is missing", "error", missing)
	}
	return g, nil
}

// classify returns the call of a request: class, customer, key and deadline by its route.
func (g *gate) classify(r *http.Request) (call spillway.Call) {
	if route := g.settings.Load().table.Match(r); route != nil {
		call.Criticality, call.Customer, call.Key = route.Class, route.Customer(r), route.LimitKey
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
	if s == nil || g.users.n.Load() < 0 {
		return true
	}
	to := s.match(r)
	return to == nil || to.gate != g || to.Config.Exempt || s.internal && spillhttp.DefaultExempt(r)
}

// batchBody is the longest body that is read before its request gets its turn in front of a
// batch cluster. There are few turns, so that clients must not hold them as they send.
const batchBody = 1 << 20

// serve serves a request that was let in.
func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	g.admitted.Add(1)
	g.charge(r)
	x := clients.Under(w)
	if q := g.cluster.Current().Queue(); q != nil {
		if err := x.Body().ReadAhead(r, batchBody); err != nil {
			answer(w, r, err, 0)
			return
		}
		customer := g.classify(r).Customer
		turn := turns.Request{
			Criticality: spillway.CriticalityFrom(r.Context()),
			Customer:    cmp.Or(customer, x.Network()),      // customers take turns, and addresses where there are none
			Incoming:    !x.Whole() && r.ContentLength != 0, // by HTTP/2, a request without a body has one, too
		}
		if err := g.turn(r.Context(), q, turn, customer); err != nil {
			answer(w, r, err, g.comeBack(err))
			return
		}
		defer q.Leave(turn)
	}
	accountingOf(r.Context()).markSent()
	takes := g.cluster.pool.Enter(x)
	defer g.cluster.pool.Leave(x, takes)
	g.forward.ServeHTTP(x.Streaming(w), r)
}

// comeBack returns the Retry-After for a request that a policy outside of the gate rejected
// with err: not before that policy expects to admit it. The value is jittered so that clients
// that were rejected together do not retry together.
func (g *gate) comeBack(err error) time.Duration {
	refused, ok := errors.AsType[*spillway.RejectedError](err)
	if ok && refused.RetryAfter > 0 {
		return time.Duration(float64(refused.RetryAfter) * (1 + rand.Float64()))
	}
	u := g.cluster.Current()
	if ok && refused.Policy == "throttle" { // all endpoints may have asked to be left alone
		if wait := u.Wait(time.Now(), refused.Criticality); wait > 0 {
			return wait + time.Duration(float64(wait)*rand.Float64()/10)
		}
	}
	after := cmp.Or(u.Config().RetryAfter, time.Second)
	return time.Duration(float64(after) * (0.5 + rand.Float64()))
}

// turn waits for the turn of a request. It reports the outcome of requests that end in the
// queue: deadline exceeded or client gone. Other policies report the outcome of the rest.
func (g *gate) turn(ctx context.Context, q *turns.Queue, turn turns.Request, customer string) error {
	now, call := time.Now(), spillway.Call{Key: g.key.cluster, Customer: customer, Criticality: turn.Criticality}
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

// users counts the users of a resource that is closed when the last user has left.
type users struct {
	n    atomic.Int64 // retired is added when no more may come
	most atomic.Int64 // of n, since it was last asked for
	once sync.Once
	make sync.Once
	none chan struct{}
}

const retired = -1 << 40

func (u *users) gone() chan struct{} {
	u.make.Do(func() { u.none = make(chan struct{}) })
	return u.none
}

// enter reports whether the resource may still be used. If so, leave must be called.
func (u *users) enter() bool {
	if n := u.n.Add(1); n > 0 {
		u.raise(n)
		return true
	}
	u.leave()
	return false
}

func (u *users) leave() {
	if u.n.Add(-1) == retired {
		u.once.Do(func() { close(u.gone()) })
	}
}

func (u *users) raise(n int64) {
	for {
		most := u.most.Load()
		if n <= most || u.most.CompareAndSwap(most, n) {
			return
		}
	}
}

// count returns how many there are.
func (u *users) count() int {
	n := u.n.Load()
	if n < 0 {
		n -= retired
	}
	return int(n)
}

// peak returns the most there were at once since it was last called.
func (u *users) peak() int { return max(int(u.most.Swap(0)), u.count()) }

// retire rejects new users, and returns a channel that is closed when all have left.
func (u *users) retire() <-chan struct{} {
	none := u.gone()
	if u.n.Add(retired) == retired {
		u.once.Do(func() { close(none) })
	}
	return none
}
