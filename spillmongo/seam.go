//lint:file-ignore SA1019 the driver deprecates what is not stable, which is all that there is

package spillmongo

// This file alone knows the driver's packages below x/, which may change in any
// release: it puts a Deployment around the driver's own, and translates. All else
// in this package uses what is declared here and the driver's stable packages.
// TestDriverVersion says which versions it is known to fit, and the tests beside
// it hold what is relied on:
//
//   - Execute writes a command, reads its answer, and gives both errors the same
//     meaning; until Read returns, the message is ours to keep and to change.
//   - Between Read and the decision to retry, it calls ProcessError with an error
//     whose labels are shared with the one that it decides by and returns.
//   - When it is about to retry after a network error, it asks twice whether that is
//     context.Canceled: the first time for the record, the second time to return it.
//   - Without RetryReads it retries no read. Only writes that carry a transaction
//     number, and the ends of transactions, are retried with RetryWrites.
//   - A cursor calls Connection of the Server that its first answer came by.
//   - Before a change stream is opened once more after an error, its own selector is
//     given to SelectServer, and the error of that is returned.
//   - A transaction that gives its connection up calls UnpinFromTransaction and Close
//     before the decision to retry, and Close again after it.
//   - Connection returns a new mnet.Connection each time, which is ours to change.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/session" //nolint:staticcheck // as above
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/seed90641741/spillway"
)

// knownDrivers are the versions of the driver that this package was tested with.
var knownDrivers = []string{"2.9.3"}

// deployed reports whether o brings its own servers or its own encryption.
func deployed(o *options.ClientOptions) (deployment, crypt bool) {
	return o.Deployment != nil, o.Crypt != nil //nolint:staticcheck // as above
}

// deploy gives o a Deployment of ours, with the servers that it names.
func deploy(o *options.ClientOptions, r *Retrier) error {
	var authenticator driver.Authenticator
	if o.Auth != nil {
		a, err := auth.CreateAuthenticator(o.Auth.AuthMechanism, topology.ConvertCreds(o.Auth), o.HTTPClient)
		if err != nil {
			return fmt.Errorf("spillmongo: authenticator: %w", err)
		}
		authenticator = a
	}
	info := new(atomic.Pointer[options.DriverInfo])
	info.Store(o.DriverInfo)
	clock := new(session.ClusterClock) //nolint:staticcheck // as above
	c, err := topology.NewAuthenticatorConfig(authenticator, topology.WithAuthConfigClock(clock),
		topology.WithAuthConfigClientOptions(o), topology.WithAuthConfigDriverInfo(info))
	if err != nil {
		return err
	}
	if r.helloTrue {
		c.ServerOpts = append(c.ServerOpts, topology.WithConnectionOptions(func(opts ...topology.ConnectionOption) []topology.ConnectionOption {
			return append(slices.Clip(opts), topology.WithHandshaker(func(h topology.Handshaker) topology.Handshaker { return handshaker{h} }))
		}))
	}
	t, err := topology.New(c)
	if err != nil {
		return err
	}
	r.sharded = func() bool { return t.Kind() == description.TopologyKindSharded }
	o.Deployment = &deployment{Topology: t, retrier: r} //nolint:staticcheck // as above
	return nil
}

// A handshaker says backpressure: true in the hello of pooled connections, below
// the encryption of TLS, which a dialer cannot do.
type handshaker struct{ driver.Handshaker }

func (h handshaker) GetHandshakeInformation(ctx context.Context, a address.Address, c *mnet.Connection) (driver.HandshakeInformation, error) {
	return h.Handshaker.GetHandshakeInformation(ctx, a, &mnet.Connection{
		ReadWriteCloser: helloWriter{c.ReadWriteCloser},
		Describer:       c.Describer, Streamer: c.Streamer, Compressor: c.Compressor, Pinner: c.Pinner,
	})
}

type helloWriter struct{ mnet.ReadWriteCloser }

func (w helloWriter) Write(ctx context.Context, wm []byte) error {
	return w.ReadWriteCloser.Write(ctx, helloTrue(wm))
}

// A deployment is the driver's, with servers of ours.
type deployment struct {
	*topology.Topology

	retrier *Retrier
	over    over
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
	s, err := d.Topology.SelectServer(ctx, selector)
	if err != nil {
		return nil, err
	}
	return &server{deployment: d, Server: s, selector: selector}, nil
}

// A server is what was selected for one operation, and for the cursor that comes of
// it. It becomes another one if the operation is retried elsewhere.
type server struct {
	deployment *deployment
	driver.Server

	selector description.ServerSelector
	home     bool // of a cursor, if there is more to come after the first connection
	first    conn // most often the only one
}

// Connection returns a connection. It is called once for the operation, and then for
// each command of its cursor, which cannot go elsewhere.
func (s *server) Connection(ctx context.Context) (*mnet.Connection, error) {
	r := s.deployment.retrier
	start := r.clock()
	inner, err := s.Server.Connection(ctx)
	if err == nil {
		return s.wrap(inner, nil), nil
	}
	k := r.opening()
	for retries := 0; ; retries++ {
		k.use(s.address())
		v := judgeOpening(err)
		if !k.again(ctx, v.failure(r)) {
			r.observe("", start, retries, v)
			return nil, opaque(err)
		}
		if inner, err = s.reconnect(ctx, s.home, k.avoid); err == nil {
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
		return s.Server.Connection(ctx)
	}
	if d := s.deployment.GetServerSelectionTimeout(); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	next, err := s.deployment.Topology.SelectServer(ctx, deprioritized{s.selector, avoid})
	if err != nil {
		return nil, err
	}
	s.Server = next
	return next.Connection(ctx)
}

// ProcessError passes on what the driver says of an attempt. After the last one
// it takes away the labels by which the driver would start a loop of its own.
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

// A conn stands in the connection of one operation, where the driver writes, reads
// and pins. Behind it is another connection after each retry.
type conn struct {
	exchange

	face   *mnet.Connection // what the driver has
	inner  mnet.ReadWriteCloser
	pinner mnet.Pinner // of inner; nil if it cannot be pinned
	server *server
	pins   int32
	final  bool     // the driver must not go on
	hidden []string // labels to put back
	early  bool     // the next Close comes before the driver's decision
	loose  bool     // the driver takes it for pinned, but the pinned one is broken

	settled bool // what the driver is told of next is of an attempt before the last
}

// enter puts inner behind c. What the driver asks often it asks inner itself.
func (c *conn) enter(inner *mnet.Connection) {
	c.inner, c.pinner = inner.ReadWriteCloser, inner.Pinner
	f := c.face
	f.Describer, f.Streamer, f.Compressor = inner.Describer, inner.Streamer, inner.Compressor
	f.ReadWriteCloser, f.Pinner = c, nil
	if c.pinner != nil {
		f.Pinner = c
	}
}

// A departed describes a connection that went back to its pool, and cannot do so
// itself any more.
type departed struct {
	mnet.Describer

	description description.Server
}

func (d *departed) Description() description.Server { return d.description }

// leave gives the connection back, unless it is pinned, as those of a cursor or
// a transaction behind a load balancer are, and not broken.
func (c *conn) leave(broken bool) {
	if c.pins > 0 && !broken {
		return
	}
	for ; c.pins > 0; c.pins-- { // the end of a transaction: nothing else is sent again then
		_ = c.pinner.UnpinFromTransaction() // it is closed below, pinned or not
		c.loose = true
	}
	c.freeze()
	_ = c.inner.Close() // of a pooled connection, which does not fail
}

// freeze keeps the description of c for when it is back in its pool, and cannot
// compress any more.
func (c *conn) freeze() {
	if !c.gone() {
		c.face.Describer, c.face.Compressor = &departed{c.face.Describer, c.face.Description()}, nil
	}
}

// gone reports whether c has no connection.
func (c *conn) gone() bool {
	_, gone := c.face.Describer.(*departed)
	return gone
}

// reenter gets a connection for a retry. A cursor lives at its server. So does a
// transaction that began at a mongos, which the driver's selector sees to.
func (c *conn) reenter(ctx context.Context, stay bool, avoid []string) error {
	if !c.gone() {
		return nil // pinned
	}
	next, err := c.server.reconnect(ctx, stay, avoid)
	if err == nil {
		c.enter(next)
	}
	return err
}

// Close gives the connection back. The driver has decided then what it returns, and
// uses the message for another command; unless a transaction gives the connection up
// before, which is closed a second time then.
func (c *conn) Close() error {
	switch {
	case !c.early:
		relabel(c.hidden, hiddenLabel, driver.RetryableWriteError)
		c.hidden = nil
	case c.pins == 0:
		c.freeze() // the driver asks for it when it decides
	}
	if c.loose {
		c.freeze()
	}
	c.early, c.wm = false, nil
	c.abandon()
	return c.inner.Close()
}

func (c *conn) PinToCursor() error      { return c.pin(+1, c.pinner.PinToCursor) }
func (c *conn) PinToTransaction() error { return c.pin(+1, c.pinner.PinToTransaction) }
func (c *conn) UnpinFromCursor() error  { return c.pin(-1, c.pinner.UnpinFromCursor) }
func (c *conn) UnpinFromTransaction() error {
	c.early = c.hidden != nil
	return c.pin(-1, c.pinner.UnpinFromTransaction)
}

func (c *conn) pin(by int32, f func() error) error {
	if by < 0 && c.pins == 0 {
		return nil // loose
	}
	err := f()
	if err == nil {
		c.pins += by
	}
	return err
}

// compressed returns the message of cmd as the connection wants it.
func (c *conn) compressed(cmd *command) ([]byte, error) {
	if c.face.Compressor == nil || !cmd.compressible() {
		return cmd.wire, nil
	}
	return c.face.CompressWireMessage(cmd.wire, nil)
}

// stop keeps the driver from opening a change stream once more after its last error.
func (c *conn) stop(cmd *command, deadline bool, err error) {
	e, ok := errors.AsType[driver.Error](err)
	if ok && e.RetryableRead() && cmd.name == "aggregate" && (deadline || c.retrier.endless) && byChangeStream() {
		c.server.deployment.over.put(c.server.selector, e)
	}
}

// remaining returns how long the server may work, if the answer is to be here in time.
func (c *conn) remaining(deadline time.Time) time.Duration {
	return time.Until(deadline) - c.server.RTTMonitor().Min()
}

// judge says what an attempt at cmd brought.
func (c *conn) judge(cmd *command, reply []byte, err error) (v verdict) {
	if err != nil {
		v.err = driver.Error{Message: err.Error(), Labels: []string{driver.NetworkError}, Wrapped: err}
		v.canceled = errors.Is(err, context.Canceled)
		v.again = cmd.retryable && !v.canceled && !errors.Is(err, context.DeadlineExceeded)
		return v
	}
	m, err := parseMessage(reply)
	if err != nil {
		v.err = err
		return v
	}
	v.reply = m.body
	v.err = driver.ExtractErrorFromServerResponse(bsoncore.Document(m.body))
	desc, write := c.face.Description(), cmd.kind == spillway.Write
	if e, ok := errors.AsType[driver.Error](v.err); ok {
		v.base, v.coded = e.BaseBackoff, e.Code != 0
		v.again = !write && e.RetryableRead() || write && e.RetryableWrite(desc.WireVersion)
	}
	if e, ok := errors.AsType[driver.WriteCommandError](v.err); ok {
		v.base, v.coded, v.done = e.BaseBackoff, true, true
		v.again = write && e.Retryable(desc.Kind, desc.WireVersion)
	}
	v.again = v.again && cmd.retryable
	v.label(labelsOf(v.err))
	return v
}

func (v *verdict) label(labels []string) {
	v.overloaded = slices.Contains(labels, driver.ErrSystemOverloadedError)
	v.safe = slices.Contains(labels, driver.ErrRetryableError)
	v.nothingWritten = slices.Contains(labels, driver.NoWritesPerformed)
}

// judgeOpening says what it means that no connection could be had.
func judgeOpening(err error) (v verdict) {
	v.err = err
	if e, ok := errors.AsType[driver.Error](err); ok {
		v.label(e.Labels)
	}
	var p driver.RetryablePoolError
	if errors.As(err, &p) {
		v.again = p.Retryable()
	}
	return v
}

// What [clean] looks for, as it stands in a document.
var (
	keyOK                = []byte("ok\x00")
	okay                 = []byte("\x01ok\x00\x00\x00\x00\x00\x00\x00\xf0\x3f") // as servers write it
	keyErrorLabels       = []byte("errorLabels\x00")
	keyWriteConcernError = []byte("writeConcernError\x00")
)

// clean reports whether an answer, an OP_MSG, is of success without reservations.
// It is asked about each answer, and allocates nothing.
func clean(wm []byte) bool {
	const body = headerSize + 4 + 1
	if opcode(wm) != opMsg || len(wm) < body || wm[body-1] != 0 {
		return false
	}
	doc, ok := sized(wm[body:])
	if !ok {
		return false
	}
	success := false
	for rest := doc[4 : len(doc)-1]; len(rest) > 0; {
		var e bsoncore.Element
		if e, rest, ok = bsoncore.ReadElement(rest); !ok {
			return false
		}
		switch key := e[1:]; {
		case bytes.Equal(e, okay):
			success = true
		case bytes.HasPrefix(key, keyOK):
			n, ok := e.Value().AsInt64OK()
			success = ok && n == 1
		case bytes.HasPrefix(key, keyErrorLabels), bytes.HasPrefix(key, keyWriteConcernError):
			return false
		}
	}
	return success
}

// opaque returns err as one that the driver does not retry.
func opaque(err error) error {
	if _, ok := err.(driver.RetryablePoolError); ok {
		return fmt.Errorf("%w", err)
	}
	return err
}

// settle tells the server of a failed attempt that is not the last.
func (c *conn) settle(v verdict) {
	if p, ok := c.server.Server.(driver.ErrorProcessor); ok {
		p.ProcessError(v.err, c.face)
	}
}

func (c *conn) ids() ids {
	d := c.face.Description()
	return ids{connection: c.face.ID(), server: c.face.ServerConnectionID(), service: d.ServiceID}
}

func (c *conn) address() string { return string(c.face.Address()) }

// hiddenLabel stands for RetryableWriteError while the driver decides.
const hiddenLabel = "spillmongo: RetryableWriteError"

func labelsOf(err error) []string {
	if e, ok := errors.AsType[driver.Error](err); ok {
		return e.Labels
	}
	e, _ := errors.AsType[driver.WriteCommandError](err)
	return e.Labels
}

// plain returns wm, or what is in it if it is compressed.
func plain(wm []byte) ([]byte, error) {
	if opcode(wm) != opCompressed {
		return wm, nil
	}
	op, rest, ok1 := wiremessage.ReadCompressedOriginalOpCode(wm[headerSize:])
	size, rest, ok2 := wiremessage.ReadCompressedUncompressedSize(rest)
	with, rest, ok3 := wiremessage.ReadCompressedCompressorID(rest)
	if !ok1 || !ok2 || !ok3 || op != wiremessage.OpMsg || size < 0 || size > maxMessage {
		return nil, errMessage
	}
	data, err := driver.DecompressPayload(rest, driver.CompressionOpts{Compressor: with, UncompressedSize: size})
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, headerSize+len(data)), wm[:headerSize]...)
	binary.LittleEndian.PutUint32(out, uint32(headerSize+len(data)))
	binary.LittleEndian.PutUint32(out[12:], opMsg)
	return append(out, data...), nil
}

// maxMessage is the size that servers allow of a message: 48 MB.
const maxMessage = 48_000_000

func nextRequestID() int32 { return wiremessage.NextRequestID() }
