package mongotest

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// parameters are the server parameters, under MongoDB's names.
type parameters struct {
	ConnEnabled bool      `bson:"ingressConnectionEstablishmentRateLimiterEnabled"`
	ConnRate    float64   `bson:"ingressConnectionEstablishmentRatePerSec"`
	ConnBurst   float64   `bson:"ingressConnectionEstablishmentBurstCapacitySecs"`
	ConnDepth   int64     `bson:"ingressConnectionEstablishmentMaxQueueDepth"`
	ConnBypass  addresses `bson:"ingressConnectionEstablishmentRateLimiterBypass"`

	Enabled      bool         `bson:"ingressRequestRateLimiterEnabled"`
	Rate         float64      `bson:"ingressRequestAdmissionRatePerSec"`
	Burst        float64      `bson:"ingressRequestAdmissionBurstCapacitySecs"`
	Depth        int64        `bson:"ingressRequestAdmissionMaxQueueDepth"`
	Exempt       addresses    `bson:"ingressRequestRateLimiterExemptions"`
	Apps         applications `bson:"ingressRequestRateLimiterApplicationExemptions"`
	AllowRetries bool         `bson:"ingressRequestRateLimiterAllowRetries"`

	BaseBackoffMS      int32 `bson:"externalClientBaseBackoffMS"`
	EnableTestCommands bool  `bson:"enableTestCommands"`
}

type addresses struct {
	Ranges []string `bson:"ranges"`
}

type applications struct {
	AppNames []string `bson:"appNames"`
}

// MarshalBSONValue implements [bson.ValueMarshaler]. A server is told a document, as it is of [addresses], but
// answers with the array alone, or with null if it was never told.
func (a applications) MarshalBSONValue() (kind byte, data []byte, err error) {
	t, data, err := bson.MarshalValue(a.AppNames)
	return byte(t), data, err
}

// defaults are the defaults of MongoDB: limiters that are off, and would not limit.
func defaults() parameters {
	return parameters{
		ConnRate: math.MaxInt32, ConnBurst: math.MaxFloat64,
		Rate: math.MaxInt32, Burst: math.MaxFloat64,
		AllowRetries: true, EnableTestCommands: true,
	}
}

// limits are the two ingress limiters of a node, and their parameters.
type limits struct {
	mu    sync.Mutex // taken to change them
	now   atomic.Pointer[parameters]
	conns *ratelimit.Limiter
	reqs  *ratelimit.Limiter
}

func newLimits(set bson.D) (*limits, error) {
	l := new(limits)
	p := defaults()
	l.now.Store(&p)
	var err error
	if l.conns, err = ratelimit.New(ratelimit.Config{}); err != nil {
		return nil, err
	}
	if l.reqs, err = ratelimit.New(ratelimit.Config{}); err != nil {
		return nil, err
	}
	doc, err := bson.Marshal(append(bson.D{}, set...))
	if err != nil {
		return nil, fmt.Errorf("mongotest: Parameters: %w", err)
	}
	if err := l.set(doc); err != nil {
		return nil, fmt.Errorf("mongotest: Parameters: %w", err)
	}
	return l, nil
}

func (l *limits) parameters() *parameters { return l.now.Load() }

// set changes the parameters that doc names, or none of them.
func (l *limits) set(doc bson.Raw) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := *l.parameters()
	if err := known(doc); err != nil {
		return err
	}
	if err := bson.Unmarshal(doc, &p); err != nil {
		return failf(docdb.TypeMismatch, "%v", err)
	}
	conns, err := limiterConfig(p.ConnRate, p.ConnBurst, p.ConnDepth, p.ConnBypass, applications{})
	if err != nil {
		return err
	}
	reqs, err := limiterConfig(p.Rate, p.Burst, p.Depth, p.Exempt, p.Apps)
	if err != nil {
		return err
	}
	if _, err := ratelimit.New(reqs); err != nil { // before anything has changed
		return failf(docdb.BadValue, "%v", err)
	}
	if err := l.conns.Update(conns); err != nil {
		return failf(docdb.BadValue, "%v", err)
	}
	if err := l.reqs.Update(reqs); err != nil {
		return err
	}
	l.now.Store(&p)
	return nil
}

// known errs if doc names something that is no parameter.
func known(doc bson.Raw) error {
	all, err := bson.Marshal(defaults())
	for name := range wire.Elements(doc) {
		if bson.Raw(all).Lookup(name).IsZero() {
			return failf(docdb.InvalidOptions, "attempted to set unrecognized parameter [%s]", name)
		}
	}
	return err
}

// limiterConfig is MongoDB's parameters in the words of package ratelimit. A rate, or
// a burst, that is more than that package takes never limits anything.
func limiterConfig(rate, burst float64, depth int64, ranges addresses, apps applications) (ratelimit.Config, error) {
	const maxRate, day = 1e6, 86400
	c := ratelimit.Config{Rate: rate, BurstSeconds: burst, QueueDepth: int(depth)}
	if !(rate > 0) || !(burst > 0) || depth < 0 {
		return c, failf(docdb.BadValue, "a rate and a burst must be above 0, and a queue depth not below")
	}
	if rate > maxRate || burst > day {
		c.Rate, c.BurstSeconds = 0, 0
	}
	for _, s := range ranges.Ranges {
		p, err := parseRange(s)
		if err != nil {
			return c, failf(docdb.BadValue, "%v", err)
		}
		c.Exempt.CIDRs = append(c.Exempt.CIDRs, p)
	}
	c.Exempt.Applications = slices.Clone(apps.AppNames)
	return c, nil
}

// parseRange reads a network, or a single address.
func parseRange(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Prefix(a.BitLen())
	}
	return netip.ParsePrefix(s)
}

// admit asks the limiter of requests. Commands that come before a client has
// authenticated are exempt.
func (r *request) admit() error {
	l := r.node.limits
	if !l.parameters().Enabled || commands[r.name].before || !r.authorized() {
		return nil
	}
	c := &r.conn.client
	if l.reqs.Exempt(r.conn.caller(c.appName)) || l.reqs.Exempt(r.conn.caller(c.driver)) {
		return nil
	}
	res, err := l.reqs.Reserve(time.Now())
	if err != nil {
		r.node.count(func(s *Stats) { s.Rejected++ })
		return failf(codeIngressRequestRateLimit,
			"Request rejected: rate limit exceeded, possibly due to system overload. Throttling workload is recommended.")
	}
	if res.Wait == 0 {
		return nil
	}
	r.conn.wait(res.Wait, nil)
	if !res.End(time.Now()) {
		return errClose
	}
	return nil
}
