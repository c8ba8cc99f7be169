//lint:file-ignore SA1019 the driver marks its unstable packages as deprecated

package spillmongo

// The files seam.go, deployment.go, conn.go, judge.go, compress.go, queue.go and selftest.go are the only ones
// that import the driver's packages below x/, which may change in any release. They put
// a Deployment around the driver's own, and translate. All other files use what these
// declare, and the driver's stable packages. TestDriverVersion says which versions are
// known to work, and its neighbours check what these files rely on:
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
//   - With a server selection timeout of zero, SelectServer and Connection receive the
//     context of the operation, with its deadline.
//   - Each operation runs in a method execute of a type that has the name of its
//     command, with "Op" after it. [New] tests that, and rejects another driver.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/session" //nolint:staticcheck // as above
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// knownDrivers are the versions of the driver that this package was tested with.
var knownDrivers = []string{"2.9.3"}

// deployed reports whether o brings its own servers or its own encryption.
func deployed(o *options.ClientOptions) (deployment, crypt any) {
	return o.Deployment, o.Crypt //nolint:staticcheck // as above
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
	wrap := func(h topology.Handshaker) topology.Handshaker { return handshaker{h, r.helloTrue} }
	c.ServerOpts = append(c.ServerOpts, topology.WithConnectionOptions(func(opts ...topology.ConnectionOption) []topology.ConnectionOption {
		return append(slices.Clip(opts), topology.WithHandshaker(wrap))
	}))
	t, err := topology.New(c)
	if err != nil {
		return err
	}
	r.sharded = func() bool { return t.Kind() == description.TopologyKindSharded }
	d := &deployment{Topology: t, retrier: r}
	if o.MaxPoolSize != nil {
		d.queues.connections = *o.MaxPoolSize
	}
	o.Deployment = d //nolint:staticcheck // as above
	return nil
}

// A handshaker sends backpressure: true in the hello of pooled connections, below the
// encryption of TLS, where a dialer cannot. The driver replaces the handshaker of its
// monitors (Server.createConnection in topology/server.go), so it does not reach them.
// It also marks the errors of a hello that are no network errors.
type handshaker struct {
	driver.Handshaker

	helloTrue bool
}

func (h handshaker) GetHandshakeInformation(ctx context.Context, a address.Address, c *mnet.Connection) (driver.HandshakeInformation, error) {
	if h.helloTrue {
		c = &mnet.Connection{
			ReadWriteCloser: helloWriter{c.ReadWriteCloser},
			Describer:       c.Describer, Streamer: c.Streamer, Compressor: c.Compressor, Pinner: c.Pinner,
		}
	}
	info, err := h.Handshaker.GetHandshakeInformation(ctx, a, c)
	if _, ok := errors.AsType[driver.Error](err); err != nil && !ok {
		err = answerError{err}
	}
	return info, err
}

// An answerError says that a server answered, but not with what a hello is answered
// with. The driver labels it like a network error.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

type helloWriter struct{ mnet.ReadWriteCloser }

func (w helloWriter) Write(ctx context.Context, wm []byte) error {
	return w.ReadWriteCloser.Write(ctx, helloTrue(wm))
}
