package mongotest

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
)

const setName = "mongotest"

// A Deployment is one or several nodes that share their data. It is safe for
// concurrent use. Make one with [New] and end it with [Deployment.Close], or let
// [Start] do both.
type Deployment struct {
	config   Config
	network  network
	nodes    []*Node
	db       *docdb.DB
	sessions sessions
	users    credentials

	front net.Listener // of a load balancer
	work  sync.WaitGroup

	mu      sync.Mutex
	primary int   // -1 for none
	term    int64 // how often a primary was elected
	turn    int   // of the node that gets the next connection from the front
}

// Start starts a deployment that ends with the test.
func Start(tb testing.TB, c Config) *Deployment {
	tb.Helper()
	d, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Close)
	return d
}

// New starts a deployment, or returns an error that names the bad field of c, or
// says why nothing could be opened. The caller must close it.
func New(c Config) (*Deployment, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	d := &Deployment{config: c, network: newNetwork(c.Pipes), db: docdb.New(c.MaxBytes), term: 1}
	var err error
	if d.users, err = newCredentials(c.Users); err != nil {
		return nil, err
	}
	for i := range c.Nodes {
		n, err := newNode(d, i)
		if err != nil {
			return nil, err
		}
		d.nodes = append(d.nodes, n)
	}
	if err := d.open(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// open starts to listen, at the nodes or in front of them.
func (d *Deployment) open() error {
	if d.config.Topology == LoadBalanced {
		l, err := d.network.listen("")
		if err != nil {
			return err
		}
		d.front = l
		d.work.Go(func() { accept(l, d.balance) })
		return nil
	}
	for _, n := range d.nodes { // all addresses before the first hello names them
		if err := n.listen(); err != nil {
			return err
		}
	}
	for _, n := range d.nodes {
		n.run()
	}
	return nil
}

// balance hands a connection to the next node.
func (d *Deployment) balance(c net.Conn) {
	d.mu.Lock()
	n := d.nodes[d.turn%len(d.nodes)]
	d.turn++
	d.mu.Unlock()
	n.serve(c)
}

// accept hands each connection to serve, until the listener is closed.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		serve(c)
	}
}

// Close ends all nodes and connections, and returns when they are gone. It may be
// called again.
func (d *Deployment) Close() {
	if d.front != nil {
		_ = d.front.Close() // nothing can be done about it
	}
	for _, n := range d.nodes {
		n.Stop()
	}
	d.work.Wait()
}

// Node returns the i-th node, from 0 on.
func (d *Deployment) Node(i int) *Node { return d.nodes[i] }

// Nodes returns all nodes.
func (d *Deployment) Nodes() []*Node { return append([]*Node(nil), d.nodes...) }

// URI is the connection string of the deployment.
func (d *Deployment) URI() string {
	if d.front != nil {
		return fmt.Sprintf("mongodb://%s/?loadBalanced=true", d.front.Addr())
	}
	uri := fmt.Sprintf("mongodb://%s/", strings.Join(d.addresses(), ","))
	if d.config.Topology == ReplicaSet {
		uri += "?replicaSet=" + setName
	}
	return uri
}

// Options returns the options of a client of the deployment: its URI, and the dialer
// where [Config.Pipes] asks for one.
func (d *Deployment) Options() *options.ClientOptions {
	o := options.Client().ApplyURI(d.URI())
	if dialer, ok := d.network.(options.ContextDialer); ok {
		o.SetDialer(dialer)
	}
	return o
}

func (d *Deployment) addresses() (out []string) {
	for _, n := range d.nodes {
		out = append(out, n.address)
	}
	return out
}

// SetPrimary makes the i-th node of a replica set its primary; a negative i leaves it
// without one. Clients that await a hello get an answer at once.
func (d *Deployment) SetPrimary(i int) {
	d.mu.Lock()
	if i >= len(d.nodes) || i < 0 {
		i = -1
	} else {
		d.term++
	}
	d.primary = i
	d.mu.Unlock()
	for _, n := range d.nodes {
		n.topologyChanged()
	}
}

func (d *Deployment) elected() (primary int, term int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.primary, d.term
}

// writable reports whether n takes writes.
func (d *Deployment) writable(n *Node) bool {
	primary, _ := d.elected()
	return d.config.Topology != ReplicaSet || primary == n.index
}
