//lint:file-ignore SA1019 the driver marks its unstable packages as deprecated

package spillmongo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// A deployment is the driver's, with servers of ours.
type deployment struct {
	*topology.Topology

	retrier   *Retrier
	over      over
	queues    queues
	connected atomic.Bool
}

var errReused = errors.New("spillmongo: these ClientOptions were connected before: a Retrier is good for one client, make another one with New")

// Connect starts the monitors. The driver's Topology can be connected again after
// Disconnect, but its servers then are closed.
func (d *deployment) Connect() error {
	if d.connected.Swap(true) {
		return errReused
	}
	return d.Topology.Connect()
}

// Disconnect closes the log as well, if it is a file that was opened here.
func (d *deployment) Disconnect(ctx context.Context) error {
	return errors.Join(d.Topology.Disconnect(ctx), d.retrier.emitter.close())
}

// GetServerSelectionTimeout returns zero, so that the driver hands over the context of
// the operation and not a shorter one: the retry policy needs the deadline of the operation.
// The timeout is applied here, to what the driver applies it to.
func (d *deployment) GetServerSelectionTimeout() time.Duration { return 0 }

// by returns when a selection that begins now has to be over, with its connection.
func (d *deployment) by() (deadline time.Time) {
	if timeout := d.Topology.GetServerSelectionTimeout(); timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	return deadline
}

// A limited is a context with an earlier deadline, whose timer starts only when something
// waits, which is rare. It is for one goroutine.
type limited struct {
	context.Context //nolint:containedctx // it is one

	by      time.Time       // zero for no earlier deadline
	started context.Context //nolint:containedctx // as above
	cancel  context.CancelFunc
}

func (l *limited) Deadline() (time.Time, bool) {
	if d, ok := l.Context.Deadline(); ok && (l.by.IsZero() || d.Before(l.by)) {
		return d, true
	}
	return l.by, !l.by.IsZero()
}

func (l *limited) Done() <-chan struct{} { return l.start().Done() }

func (l *limited) Err() error { return l.start().Err() }

func (l *limited) start() context.Context {
	if l.by.IsZero() {
		return l.Context
	}
	if l.started == nil {
		l.started, l.cancel = context.WithDeadline(l.Context, l.by)
	}
	return l.started
}

func (l *limited) end() {
	if l.cancel != nil {
		l.cancel()
	}
}

// over holds the last errors of change streams that the driver is about to open once
// more, which it must not.
type over struct {
	some atomic.Int32
	mu   sync.Mutex
	all  []lastOf
}

type lastOf struct {
	selector description.ServerSelector
	err      error
}

func (o *over) put(selector description.ServerSelector, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, lastOf{selector, err})
	o.some.Add(1)
}

func (o *over) take(selector description.ServerSelector) (err error) {
	if o.some.Load() == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, l := range o.all {
		if l.selector == selector {
			o.all = slices.Delete(o.all, i, i+1)
			o.some.Add(-1)
			return l.err
		}
	}
	return nil
}

func (d *deployment) SelectServer(ctx context.Context, selector description.ServerSelector) (driver.Server, error) {
	if err := d.over.take(selector); err != nil {
		return nil, err
	}
	s := &server{deployment: d, selector: selector, limit: limited{Context: ctx, by: d.by()}}
	selected, err := d.Topology.SelectServer(&s.limit, selector)
	s.limit.end()
	if err != nil {
		return nil, err
	}
	s.Server = selected
	return s, nil
}

// A server is what was selected for one operation, and for the cursor that it opens. It becomes another one if the operation is retried elsewhere.
type server struct {
	deployment *deployment
	driver.Server

	selector description.ServerSelector
	limit    limited // of the selection, and of getting the first connection
	place    *place  // in the queue for the connection that was got last, until a conn has it
	home     bool    // of a cursor, if there is more to come after the first connection
	first    conn    // most often the only one
}

// Connection returns a connection. It is called once for the operation, and then for
// each command of its cursor, which cannot go elsewhere.
func (s *server) Connection(ctx context.Context) (*mnet.Connection, error) {
	r := s.deployment.retrier
	start := r.clock()
	s.limit = limited{Context: ctx, by: s.limit.by}
	inner, err := s.checkOut(&s.limit)
	s.limit.end()
	s.limit.by = time.Time{}
	if err == nil {
		return s.wrap(inner, nil), nil
	}
	k := r.opening(ctx)
	for retries := 0; ; retries++ {
		k.use(s.address())
		v := judgeOpening(err)
		if !k.again(ctx, v.failure(r)) {
			r.observe("", start, retries, v)
			return nil, opaque(err)
		}
		inner, err = s.reconnect(ctx, s.home, k.avoid)
		if v := judgeOpening(err); err == nil || v.overloaded || v.again {
			k.sent()
		}
		if err == nil {
			return s.wrap(inner, k), nil
		}
	}
}

// wrap makes inner what the driver is to see. It has what it had, no more.
func (s *server) wrap(inner *mnet.Connection, begun *call) *mnet.Connection {
	c := &s.first
	if s.home {
		c = new(conn)
	}
	s.home = true
	c.server, c.retrier, c.call, c.face = s, s.deployment.retrier, begun, inner
	c.enter(inner)
	return inner
}

// reconnect returns another connection. Unless it is to stay, it selects a server
// again, if possible none of those to avoid.
func (s *server) reconnect(ctx context.Context, stay bool, avoid []string) (*mnet.Connection, error) {
	if stay {
		return s.checkOut(ctx)
	}
	limit := &limited{Context: ctx, by: s.deployment.by()}
	defer limit.end()
	next, err := s.deployment.Topology.SelectServer(limit, deprioritized{s.selector, avoid})
	if err != nil {
		return nil, err
	}
	s.Server = next
	return s.checkOut(limit)
}

// ProcessError passes on what the driver says of an attempt. After the last one
// it removes the labels by which the driver would start its own retry loop.
func (s *server) ProcessError(err error, by mnet.Describer) (result driver.ProcessErrorResult) {
	if err == nil {
		return driver.NoChange
	}
	var c *conn
	if m, ok := by.(*mnet.Connection); ok {
		c, _ = m.ReadWriteCloser.(*conn)
	}
	if p, ok := s.Server.(driver.ErrorProcessor); ok && (c == nil || !c.settled) {
		result = p.ProcessError(err, by)
	}
	if c != nil && c.final {
		c.hidden = labelsOf(err)
		relabel(c.hidden, driver.RetryableWriteError, hiddenLabel)
	}
	return result
}

func (s *server) address() string {
	if t, ok := s.Server.(*topology.SelectedServer); ok {
		return string(t.Server.Description().Addr)
	}
	return ""
}

// deprioritized selects as another selector does, among the servers that are not
// to be avoided if it finds one there.
type deprioritized struct {
	description.ServerSelector

	avoid []string
}

func (d deprioritized) SelectServer(t description.Topology, all []description.Server) ([]description.Server, error) {
	others := slices.DeleteFunc(slices.Clone(all), func(s description.Server) bool {
		return slices.Contains(d.avoid, string(s.Addr))
	})
	if len(others) < len(all) {
		if found, err := d.ServerSelector.SelectServer(t, others); err == nil && len(found) > 0 {
			return found, nil
		}
	}
	return d.ServerSelector.SelectServer(t, all)
}
