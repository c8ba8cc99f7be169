package spillmongo

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/retry"
)

// Config configures a [Retrier]. The zero Config is the policy of the document of
// February 2026 with its defaults: five retries, no token bucket.
type Config struct {
	// Revision is "2026-02" or "2026-07", the later revision of the document: two
	// retries, a longer and server-supplied backoff, other servers only on request,
	// and the options MaxAdaptiveRetries and EnableOverloadRetargeting of the
	// driver, which in 2026-02 must not be set. The empty string means "2026-02".
	Revision string
	// AdaptiveRetries turns the token bucket on: retries after an overload, which
	// may otherwise be five times the load, are then limited to what the bucket
	// holds plus a tenth of the successful commands. adaptiveRetries=true in the URI does the
	// same.
	AdaptiveRetries bool
	// Budget is the bucket of adaptive retries. Setting it turns them on. It may
	// be shared with other clients; the specification says one for each. Nil means a
	// bucket of 1000 tokens that starts full.
	Budget *budget.Bucket
	// ServerBudgets, if not nil, has a further bucket for each server, by address,
	// from which a retry after an overload of that server is paid as well. One
	// overloaded server then cannot use up the retries at the others. It may be
	// shared by clients of the same servers.
	ServerBudgets *budget.Endpoints
	// LabelCommands puts the criticality of the context of an operation, where it
	// carries one, into the comment of its commands: {criticality: "SHEDDABLE"}. The
	// MongoDB listener of "spillway proxy" rejects by it. A comment of the
	// application that is a document gets the member added, any other is left as it
	// is. It needs MongoDB 4.4 or later, which take a comment in every command.
	LabelCommands bool
	// Rand returns the jitter of a backoff, in [0, 1). It is called by many
	// goroutines at once. Nil means math/rand/v2.Float64.
	Rand func() float64
	// Observer, if not nil, receives one event for each command, when it has ended: an
	// Event of the policy "retry" whose Call has the name of the command as its
	// Key, and whose Attempt is the number of retries that were sent. Of a command
	// that got no connection the name is not known, so the Key is empty, and the
	// retries are attempts to open one. Writes with w: 0 have no event.
	Observer spillway.Observer
}

// A Retrier is the retry policy of one mongo.Client. It is safe for concurrent
// use; make one with [New], and one for each client.
type Retrier struct {
	options  *options.ClientOptions
	warnings []string

	strategy, ends *retry.MongoDB // ends is for those of transactions
	bucket         *budget.Bucket
	adaptive       bool // successes earn something
	hints          bool // the server may set the base of the backoff
	helloTrue      bool
	retarget       bool        // an overloaded server is avoided
	sharded        func() bool // the servers are known to be mongoses
	endless        bool        // the client has a Timeout, so the driver retries without end
	timed          bool        // somebody wants to know when attempts begin
	observer       spillway.Observer
	emitter        *emitter
	sessions       sessions
	labels         bool // commands get the criticality of their context
	count          counters
}

// New returns the policy for a client with the options o, which it does not change
// and does not keep; nil means the driver's defaults. It returns an error that
// names what is wrong with o or c, or if this version of the driver is not one that the package can
// work with. The client is made with
//
//	retrier, err := spillmongo.New(o, spillmongo.Config{})
//	…
//	client, err := mongo.Connect(retrier.ClientOptions())
//
// Nothing is connected to before that. The options RetryReads and RetryWrites
// switch retries of reads and writes off; either of them the retries of runCommand. A client
// with automatic encryption cannot have a policy, nor can one with a Deployment of
// its own.
func New(o *options.ClientOptions, c Config) (*Retrier, error) {
	if o == nil {
		o = options.Client()
	}
	if err := errors.Join(supported(o), selfTest()); err != nil {
		return nil, err
	}
	r := &Retrier{observer: c.Observer, labels: c.LabelCommands}
	var err error
	if r.emitter, err = newEmitter(o, &r.sessions); err != nil {
		return nil, err
	}
	r.timed = r.observer != nil || r.emitter != nil
	if err := r.configure(o, c); err != nil {
		return nil, err
	}
	own := *o
	none, no := uint(0), false
	own.RetryReads, own.MaxAdaptiveRetries, own.EnableOverloadRetargeting = &no, &none, &no
	own.Monitor, own.LoggerOptions = r.emitter.monitor(), r.emitter.logger(o.LoggerOptions)
	if pool := uint64(maxPoolSize); own.MaxPoolSize == nil {
		own.MaxPoolSize = &pool
	}
	if r.helloTrue {
		own.Dialer = dialer{base: o.Dialer}
		if o.Dialer == nil {
			own.Dialer = dialer{base: &net.Dialer{}}
		}
	}
	if err := deploy(&own, r); err != nil {
		return nil, err
	}
	r.options = &own
	return r, nil
}

// maxPoolSize is the driver's default, which mongo.Connect sets too late for servers
// that are there already. Without it a pool has no bound.
const maxPoolSize = 100

// ClientOptions returns the options to connect with. They are good for one client,
// and must not be changed; a second mongo.Connect returns an error. Further options
// given to mongo.Connect do not reach the servers.
func (r *Retrier) ClientOptions() *options.ClientOptions { return r.options }

// Warnings says which options of the URI were ignored because of their values, as
// the specification of URI options says.
func (r *Retrier) Warnings() []string { return r.warnings }

func supported(o *options.ClientOptions) error {
	deployment, crypt := deployed(o)
	switch {
	case o.AutoEncryptionOptions != nil:
		return invalid.Field("spillmongo", "AutoEncryptionOptions", o.AutoEncryptionOptions,
			"nil: its helpers would share the client's servers (use explicit encryption)")
	case crypt != nil:
		return invalid.Field("spillmongo", "Crypt", crypt, "nil")
	case deployment != nil:
		return invalid.Field("spillmongo", "Deployment", deployment, "nil: a Retrier brings its own")
	default:
		return o.Validate()
	}
}

// configure makes the strategies and their budget.
func (r *Retrier) configure(o *options.ClientOptions, c Config) error {
	later := c.Revision == "2026-07"
	oc := retry.MongoDBConfig{
		Revision: c.Revision, OtherRetries: -1, Rand: c.Rand,
		NoReads: off(o.RetryReads), NoWrites: off(o.RetryWrites),
	}
	if o.Timeout != nil { // even of zero, which is no limit; the contexts bring the others
		oc.OtherRetries, r.endless = math.MaxInt32-1, true
	}
	if n := o.MaxAdaptiveRetries; n != nil {
		if !later {
			return invalid.Field("spillmongo", "MaxAdaptiveRetries", *n, "nil in revision 2026-02 (use Revision 2026-07)")
		}
		if *n > maxRetries {
			return invalid.Field("spillmongo", "MaxAdaptiveRetries", *n, "at most %d", maxRetries)
		}
		if oc.MaxRetries = int(*n); *n == 0 {
			oc.MaxRetries = -1
		}
	}
	if b := o.EnableOverloadRetargeting; b != nil {
		if !later {
			return invalid.Field("spillmongo", "EnableOverloadRetargeting", *b, "nil in revision 2026-02, which always does it")
		}
		oc.Retarget = *b
	}
	r.hints, r.helloTrue, r.retarget = later, !later, !later || oc.Retarget
	if err := r.pay(&oc, o, c); err != nil {
		return err
	}
	var err error
	if r.strategy, err = retry.NewMongoDB(oc); err != nil {
		return invalid.In("spillmongo", "", err)
	}
	oc.NoReads, oc.NoWrites = false, false
	r.ends, err = retry.NewMongoDB(oc)
	return err
}

// maxRetries bounds MaxAdaptiveRetries. With a wait of 10 s before each, no
// operation has time for more.
const maxRetries = 1000

// pay says who pays for retries.
func (r *Retrier) pay(oc *retry.MongoDBConfig, o *options.ClientOptions, c Config) (err error) {
	adaptive, warning := adaptiveRetries(o.GetURI())
	if warning != "" {
		r.warnings = append(r.warnings, warning)
	}
	r.bucket = c.Budget
	if r.bucket == nil && (adaptive || c.AdaptiveRetries) {
		if r.bucket, err = budget.New(budget.Config{Capacity: 1000}); err != nil {
			return err
		}
	}
	switch {
	case r.bucket != nil && c.ServerBudgets != nil:
		oc.Budget = both{r.bucket, c.ServerBudgets}
	case r.bucket != nil:
		oc.Budget = r.bucket
	case c.ServerBudgets != nil:
		oc.Budget = c.ServerBudgets
	}
	r.adaptive = oc.Budget != nil
	return nil
}

func off(b *bool) bool { return b != nil && !*b }

// strategyFor returns the strategy for cmd. The ends of transactions are retried
// whatever RetryWrites says, as the document on transactions has it.
func (r *Retrier) strategyFor(cmd *command) retry.Strategy {
	if cmd.ends && cmd.retryable {
		return r.ends
	}
	return r.strategy
}

// adaptiveRetries returns what a URI says of the option that the driver does not
// know. A value that is neither true nor false is ignored, with a warning.
func adaptiveRetries(uri string) (on bool, warning string) {
	_, query, _ := strings.Cut(uri, "?")
	for pair := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(key, "adaptiveRetries") {
			continue
		}
		if v, err := url.QueryUnescape(value); err == nil {
			value = v
		}
		switch value {
		case "true":
			on = true
		case "false":
			on = false
		default:
			warning = fmt.Sprintf("adaptiveRetries is %.32q in the URI, must be true or false: ignored", value)
		}
	}
	return on, warning
}

// both is a budget that charges the client and the server.
type both struct {
	client  *budget.Bucket
	servers *budget.Endpoints
}

func (b both) Withdraw(now time.Time, server string, tokens float64) (left, capacity float64, ok bool) {
	if left, capacity, ok = b.client.Withdraw(now, server, tokens); !ok {
		return left, capacity, false
	}
	if l, c, ok := b.servers.Withdraw(now, server, tokens); !ok {
		b.client.Deposit(server, tokens)
		return l, c, false
	}
	return left, capacity, true
}

func (b both) Deposit(server string, tokens float64) {
	b.client.Deposit(server, tokens)
	b.servers.Deposit(server, tokens)
}
