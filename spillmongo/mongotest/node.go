package mongotest

import (
	"errors"
	"maps"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// maxConnections bounds the connections of a node.
const maxConnections = 20_000

// A Node is one server of a [Deployment]. It is safe for concurrent use.
type Node struct {
	deployment *Deployment
	index      int
	address    string
	service    bson.ObjectID // behind a load balancer
	limits     *limits
	points     failPoints
	cursors    cursors
	latencies  latencies
	worker     *worker

	mu        sync.Mutex
	listener  net.Listener // nil while stopped
	stopped   bool
	conns     map[*conn]struct{}
	serving   *sync.WaitGroup
	stats     Stats
	started   time.Time
	version   topologyVersion
	changed   chan struct{} // closed at the next change of version
	lastReply int32
}

// Stats says what a [Node] has seen.
type Stats struct {
	Connections        int    // open
	Accepted           uint64 // connections, those that were rejected included
	ConnectionsRefused uint64 // closed by the limiter of connections
	Rejected           uint64 // commands answered by the limiter of requests
	Failed             uint64 // commands that the fail point failCommand failed
	Replayed           uint64 // retryable writes that had been done before

	// Commands is how many commands came, by name, whatever became of them. A hello
	// that is answered again and again counts once.
	Commands map[string]uint64
}

func newNode(d *Deployment, index int) (*Node, error) {
	n := &Node{
		deployment: d,
		index:      index,
		service:    bson.NewObjectID(),
		conns:      map[*conn]struct{}{},
		worker:     newWorker(d.config.Work),
		serving:    new(sync.WaitGroup),
		started:    time.Now(),
		version:    topologyVersion{ProcessID: bson.NewObjectID()},
		changed:    make(chan struct{}),
		stats:      Stats{Commands: map[string]uint64{}},
	}
	var err error
	n.limits, err = newLimits(d.config.Parameters)
	return n, err
}

// since is when the node was started, or restarted.
func (n *Node) since() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.started
}

// Addr is the host and port of the node. It is empty behind a load balancer.
func (n *Node) Addr() string { return n.address }

// Stats returns the counts so far.
func (n *Node) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.Connections = len(n.conns)
	s.Commands = maps.Clone(s.Commands)
	return s
}

// listen opens the address of the node; the first time it chooses one.
func (n *Node) listen() error {
	l, err := n.deployment.network.listen(n.address)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listener = l
	if n.address == "" { // it is read without the lock from then on
		n.address = l.Addr().String()
	}
	return nil
}

func (n *Node) run() {
	n.mu.Lock()
	l := n.listener
	n.mu.Unlock()
	if l != nil { // else it was stopped in the meantime
		n.deployment.work.Go(func() { accept(l, n.serve) })
	}
}

// serve serves a connection in its own goroutine.
func (n *Node) serve(nc net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stats.Accepted++
	if n.stopped || len(n.conns) == maxConnections {
		nc.Close()
		return
	}
	c := newConn(n, nc, int64(n.stats.Accepted))
	n.conns[c] = struct{}{}
	n.serving.Go(func() {
		c.serve()
		n.mu.Lock()
		delete(n.conns, c)
		n.mu.Unlock()
	})
}

// Stop closes the node and its connections, and returns when they are gone. It keeps
// the data, the parameters and the fail points. It may be called again.
func (n *Node) Stop() {
	n.mu.Lock()
	n.stopped = true
	if n.listener != nil {
		_ = n.listener.Close() // nothing can be done about it
		n.listener = nil
	}
	n.mu.Unlock()
	n.Disconnect()
	n.serving.Wait()
}

// Restart lets a node that was stopped listen at its address again.
func (n *Node) Restart() error {
	n.Stop()
	n.mu.Lock()
	n.stopped, n.started, n.version = false, time.Now(), topologyVersion{ProcessID: bson.NewObjectID()}
	n.mu.Unlock()
	if n.deployment.front != nil {
		return nil
	}
	if err := n.listen(); err != nil {
		return err
	}
	n.run()
	return nil
}

// Disconnect closes the connections that are open now.
func (n *Node) Disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.close()
	}
}

func (n *Node) topologyChanged() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.version.Counter++
	close(n.changed)
	n.changed = make(chan struct{})
}

// topology returns the version of what the node knows of the others, and a channel
// that is closed when that changes.
func (n *Node) topology() (topologyVersion, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.version, n.changed
}

func (n *Node) nextReply() int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastReply++
	return n.lastReply
}

// RunCommand runs a command on the node from inside: without a connection, and past
// the limiters and the fail points. It is how tests configure fail points, set
// parameters, and look at the data. The error says what the reply says, if that is
// not ok.
func (n *Node) RunCommand(database string, command any) (bson.Raw, error) {
	body, err := bson.Marshal(command)
	if err != nil {
		return nil, err
	}
	if body, _, err = wire.Document(body); err != nil {
		return nil, err
	}
	c := &conn{node: n, closed: make(chan struct{})}
	r := newRequest(c, &wire.Message{Body: body, Database: database, Legacy: true})
	if r == nil {
		return nil, errors.New("mongotest: no command")
	}
	doc, err := r.execute()
	if err != nil {
		return nil, asCommandError(err)
	}
	return bson.Marshal(r.finish(doc, nil))
}

// count changes the counts under the lock.
func (n *Node) count(change func(*Stats)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.stats)
}
