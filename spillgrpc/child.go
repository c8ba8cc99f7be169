package spillgrpc

import (
	"errors"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// child is the policy underneath, and the channel that it sees. Once it is not that
// of its parent any more, nothing that it says or is told counts.
type child struct {
	balancer.ClientConn

	parent *limiting
	name   string
	policy balancer.Balancer
	open   map[balancer.SubConn]bool // with the parent locked
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
	var sc balancer.SubConn
	listen := opts.StateListener
	if listen == nil {
		listen = func(s balancer.SubConnState) { updater(c.policy).UpdateSubConnState(sc, s) }
	}
	opts.StateListener = func(s balancer.SubConnState) {
		if c.hears(sc, s) {
			listen(s)
		}
	}
	//lint:ignore SA1019 it is the one way to a connection
	sc, err := c.ClientConn.NewSubConn(addresses, opts) //nolint:staticcheck // it is the one way to a connection
	if err != nil {
		return nil, err
	}
	if !c.took(sc) {
		sc.Shutdown()
		return nil, errReplaced
	}
	return sc, nil
}

func (c *child) took(sc balancer.SubConn) bool {
	l := c.parent
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child == c {
		c.open[sc] = true
	}
	return l.child == c
}

// hears reports whether the policy is to be told of the state of a connection.
func (c *child) hears(sc balancer.SubConn, s balancer.SubConnState) bool {
	l := c.parent
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.ConnectivityState == connectivity.Shutdown {
		delete(c.open, sc)
		l.ejections.all.Delete(sc)
	}
	return l.child == c
}

// close ends the policy and its connections. The parent has let go of it. A nil
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
	for sc := range open {
		sc.Shutdown()
	}
}
