package spillgrpc

import (
	"errors"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// child is the policy underneath, and the channel that it sees. Once it is not that
// of its parent any more, nothing that it says or hears counts.
type child struct {
	balancer.ClientConn

	parent *limiting
	name   string
	policy balancer.Balancer
	open   map[*connection]bool // with the parent locked
}

// A connection is what the child sees as a connection of the channel: that, and
// what is known of its endpoint. A pick needs no search for it.
type connection struct {
	balancer.SubConn

	endpoint endpoint
}

// endpointOf returns what is known of the endpoint of a connection that the child has picked,
// or nil.
func endpointOf(sc balancer.SubConn) *endpoint {
	if c, ok := sc.(*connection); ok {
		return &c.endpoint
	}
	return nil
}

var errReplaced = errors.New("spillgrpc: the policy was replaced")

// UpdateState implements [balancer.ClientConn].
func (c *child) UpdateState(s balancer.State) {
	l := c.parent
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child == c {
		l.state = s
		l.publish()
	}
}

// NewSubConn implements [balancer.ClientConn]. It takes note of connections, as
// policies leave it to the channel to end them, which does so when it is closed itself.
func (c *child) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	x := new(connection)
	listen := opts.StateListener
	if listen == nil {
		listen = func(s balancer.SubConnState) { updater(c.policy).UpdateSubConnState(x, s) }
	}
	opts.StateListener = func(s balancer.SubConnState) {
		if c.hears(x, s) {
			listen(s)
		}
	}
	//lint:ignore SA1019 it is the one way to a connection
	sc, err := c.ClientConn.NewSubConn(addresses, opts) //nolint:staticcheck // it is the one way to a connection
	if err != nil {
		return nil, err
	}
	x.SubConn = sc
	if !c.took(x) {
		sc.Shutdown()
		return nil, errReplaced
	}
	return x, nil
}

// UpdateAddresses implements [balancer.ClientConn], for policies that keep their connections
// when addresses change.
func (c *child) UpdateAddresses(sc balancer.SubConn, addresses []resolver.Address) {
	if x, ok := sc.(*connection); ok {
		//lint:ignore SA1019 policies may still use it
		c.ClientConn.UpdateAddresses(x.SubConn, addresses) //nolint:staticcheck // policies may still use it
	}
}

// RemoveSubConn implements [balancer.ClientConn].
func (*child) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

func (c *child) took(x *connection) bool {
	l := c.parent
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child == c {
		c.open[x] = true
	}
	return l.child == c
}

// hears reports whether the policy is informed of the state of a connection.
func (c *child) hears(x *connection, s balancer.SubConnState) bool {
	l := c.parent
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.ConnectivityState == connectivity.Shutdown {
		delete(c.open, x)
	}
	return l.child == c
}

// close ends the policy and its connections. The parent has another one, or none. A nil
// child is none.
func (c *child) close() {
	if c == nil {
		return
	}
	c.policy.Close()
	c.parent.mu.Lock()
	open := c.open
	c.open = nil
	c.parent.mu.Unlock()
	for x := range open {
		x.Shutdown()
	}
}
