package spillgrpc

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/place"
)

// BalancerName is the name of the load balancing policy in service configs.
const BalancerName = "spillway_max_requests"

// NewBalancer returns a load balancing policy that bounds the attempts in flight
// to a cluster, as gRFC A32 has it, and leaves the choice of the endpoint to a
// policy underneath. An endpoint that is overloaded, and rejects calls or says that they wait,
// gets as many calls as it serves at once, and about one in a hundred more. One that rejects three
// quarters of its recent calls gets none for the time that it asked for, unless more than half
// of the endpoints would get none. One that has more than twice as many attempts in flight as
// the others, and eight more, is passed over until it has fewer. Register the policy before the first channel is made, as grpc
// requires it during initialization:
//
//	func init() { balancer.Register(spillgrpc.NewBalancer(limits)) }
//
// limits holds the limits of the process. They can be read and changed
// at any time, by [inflight.Registry.Share]. Nil means a new Registry. [BalancerConfig] is
// the part of a service config for the policy. A cluster that it names, and for which nothing
// has set a limit after 15 s, is reported once to the log of grpc (package grpclog) as an error.
func NewBalancer(limits *inflight.Registry) balancer.Builder {
	if limits == nil {
		limits = new(inflight.Registry)
	}
	place.Expect()
	return builder{limits, newUnconfigured()}
}

// builder implements [balancer.Builder] and [balancer.ConfigParser].
type builder struct {
	limits       *inflight.Registry
	unconfigured *unconfigured
}

func (builder) Name() string { return BalancerName }

func (b builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return &limiting{
		limits: b.limits, unconfigured: b.unconfigured, cc: cc, options: opts, ejections: new(ejections),
		unwatch: func() bool { return false },
	}
}

// limiting is the policy of one channel. Its exported methods are called by grpc
// one at a time; only what the child says comes at any time.
type limiting struct {
	limits       *inflight.Registry
	unconfigured *unconfigured
	cc           balancer.ClientConn
	options      balancer.BuildOptions

	ejections *ejections

	key     inflight.Key
	release func()
	unwatch func() bool

	mu      sync.Mutex
	child   *child // nil before the first config, and when closed
	limiter *inflight.Limiter
	drops   *drops
	state   balancer.State // of the child, as it said last
}

// publish hands the child's picker to the channel, behind the limit.
func (l *limiting) publish() {
	s := l.state
	endpoints := make([]*endpoint, 0, len(l.child.open))
	for c := range l.child.open {
		endpoints = append(endpoints, &c.endpoint)
	}
	s.Picker = &picker{
		child: s.Picker, limiter: l.limiter, drops: l.drops, ready: s.ConnectivityState == connectivity.Ready,
		ejections: l.ejections, endpoints: endpoints,
	}
	l.cc.UpdateState(s)
}

// UpdateClientConnState implements [balancer.Balancer].
func (l *limiting) UpdateClientConnState(s balancer.ClientConnState) error {
	c, ok := s.BalancerConfig.(*parsedConfig)
	if !ok {
		return balancer.ErrBadResolverState
	}
	l.apply(c)
	if l.child == nil || l.child.name != c.builder.Name() {
		l.replace(c.builder)
	}
	s.BalancerConfig = c.child
	return l.child.policy.UpdateClientConnState(s)
}

// apply applies the limit of c, if it has changed: a channel that wakes from idle has a new
// policy, which must not overwrite a limit that was set by other means.
func (l *limiting) apply(c *parsedConfig) {
	if key := c.key(l.options.Target.String()); l.limiter == nil || l.key != key {
		l.share(key)
	}
	l.unwatch()
	switch n := c.MaxConcurrentRequests; {
	case n != nil:
		l.limiter.Configure(*n)
	case c.Cluster != "": // which another part of the program configures
		l.unwatch = l.unconfigured.watch(l.key, l.limiter)
	}
}

// share moves to the limit of another cluster. What is in flight ends on the
// limit that admitted it.
func (l *limiting) share(key inflight.Key) {
	limiter, release := l.limits.Share(key)
	if l.release != nil {
		l.release()
	}
	l.key, l.release = key, release
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limiter, l.drops = limiter, &drops{cluster: key.Cluster}
	if l.child != nil && l.state.Picker != nil {
		l.publish()
	}
}

// replace replaces the child by another policy. Attempts wait until it
// has connected.
func (l *limiting) replace(b balancer.Builder) {
	next := &child{ClientConn: l.cc, parent: l, name: b.Name(), open: make(map[*connection]bool)}
	l.mu.Lock()
	old := l.child
	l.child, l.state = next, balancer.State{}
	l.mu.Unlock()
	old.close()
	next.policy = b.Build(next, l.options)
}

// ResolverError implements [balancer.Balancer].
func (l *limiting) ResolverError(err error) {
	if l.child != nil {
		l.child.policy.ResolverError(err)
		return
	}
	l.cc.UpdateState(balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: base.NewErrPicker(err)})
}

// updater is what children have that do not listen to connections by themselves.
type updater interface {
	UpdateSubConnState(sc balancer.SubConn, s balancer.SubConnState)
}

// UpdateSubConnState implements [balancer.Balancer].
func (l *limiting) UpdateSubConnState(sc balancer.SubConn, s balancer.SubConnState) {
	if l.child != nil {
		updater(l.child.policy).UpdateSubConnState(sc, s)
	}
}

// ExitIdle implements [balancer.Balancer].
func (l *limiting) ExitIdle() {
	if l.child != nil {
		l.child.policy.ExitIdle()
	}
}

// Close implements [balancer.Balancer].
func (l *limiting) Close() {
	l.mu.Lock()
	old := l.child
	l.child = nil
	l.mu.Unlock()
	l.unwatch()
	old.close()
	if l.release != nil {
		l.release()
	}
}

// picker picks by the child, within the limit.
type picker struct {
	child   balancer.Picker
	limiter *inflight.Limiter
	drops   *drops
	ready   bool

	ejections *ejections
	endpoints []*endpoint // of the child
}

// Pick implements [balancer.Picker]. Only an attempt that got a connection counts: one that
// waits for a connection, or gets none, does not use the limit and is not rejected by it. An
// attempt for which package egress has taken a slot in the same limit takes no second one.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	ticket, joined := place.Join(info.Ctx, p.limiter)
	if !joined && p.ready && p.limiter.Full() {
		return balancer.PickResult{}, p.drops.of(p.limiter.Reject())
	}
	r, err := p.child.Pick(info)
	if err != nil || r.SubConn == nil {
		ticket.Settle(time.Time{}, spillway.OutcomeAbandoned)
		return r, err
	}
	r = p.elsewhere(info, r)
	if first := avoided(info.Ctx, endpointOf(r.SubConn)); first != nil {
		r = p.repick(info, r, len(p.endpoints)-1, func(x *endpoint) bool { return x == first })
	}
	if !joined {
		if ticket, err = p.limiter.Admit(time.Time{}, spillway.Call{}); err != nil {
			return balancer.PickResult{}, p.discard(r, err)
		}
	}
	h := &held{ticket: ticket, done: r.Done, ejections: p.ejections}
	if c, ok := r.SubConn.(*connection); ok {
		r.SubConn, h.endpoint = c.SubConn, &c.endpoint
		p.ejections.began(h.endpoint)
	}
	r.Done = h.settle
	return r, nil
}

// discard gives the pick back to the child, as it may count what it has
// handed out, and returns the error of the drop.
func (p *picker) discard(r balancer.PickResult, rejection error) error {
	err := p.drops.of(rejection)
	if r.Done != nil {
		r.Done(balancer.DoneInfo{Err: err})
	}
	return err
}

// held is the place of an attempt in flight.
type held struct {
	ticket  spillway.Ticket
	settled atomic.Bool
	done    func(balancer.DoneInfo) // of the child; may be nil

	endpoint  *endpoint // nil: nothing is left out
	ejections *ejections
}

// settle gives back the place, once, and passes each call on to the child.
func (h *held) settle(info balancer.DoneInfo) {
	if !h.settled.Swap(true) {
		h.ticket.Settle(time.Time{}, spillway.OutcomeServed) // the limit keeps neither
		h.ejections.ended(h.endpoint, info)
	}
	if h.done != nil {
		h.done(info)
	}
}
