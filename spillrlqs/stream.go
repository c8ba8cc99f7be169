package spillrlqs

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/protobuf/proto"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// quotaService is the service of RLQS.
type quotaService struct {
	rlqs.UnimplementedRateLimitQuotaServiceServer
	s *Server
}

// StreamRateLimitQuotas serves one Envoy.
func (q quotaService) StreamRateLimitQuotas(conn rlqs.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	t, err := q.s.begin()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(conn.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.run(ctx, conn.Send)
	}()
	defer func() {
		cancel()
		go func() { // a Send that waits for the Envoy ends when the stream has ended
			<-done
			t.close()
		}()
	}()
	for {
		m, err := conn.Recv()
		if err == nil {
			err = t.receive(time.Now(), m)
		}
		if err != nil {
			return err
		}
	}
}

// A stream is one Envoy, which is a task of the fleet.
type stream struct {
	*Server
	fleet *fleet.Fleet
	fresh chan struct{} // has room for one signal that a bucket needs an assignment

	mu        sync.Mutex
	customers map[string]*customer
	order     []*customer
	buckets   map[string]*bucket
	places    [2]int // of buckets of unlisted and of listed customers
	unlisted  int    // customers
	shared    int    // customers that divide one grant
	pending   int    // bytes of ids that are not remembered
	last      time.Time
}

func newStream(s *Server, f *fleet.Fleet) *stream {
	return &stream{
		Server: s, fleet: f, fresh: make(chan struct{}, 1),
		customers: make(map[string]*customer), buckets: make(map[string]*bucket),
	}
}

// close gives back all places.
func (t *stream) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give(false, t.places[0])
	t.give(true, t.places[1])
	t.count(func(s *Stats) {
		s.Streams--
		delete(t.streams, t)
	})
}

// receive takes in the reports of an Envoy.
func (t *stream) receive(now time.Time, m *rlqs.RateLimitQuotaUsageReports) error {
	if m.GetDomain() != "" { // which only the first message has to have
		if err := t.domain(m.GetDomain()); err != nil {
			return err
		}
	}
	overflow, calls := uint64(0), classCalls{}
	defer func() {
		t.count(func(s *Stats) {
			s.ReportsTotal += uint64(len(m.GetBucketQuotaUsages()))
			s.OverflowTotal += overflow
			calls.addTo(&s.Calls)
		})
	}()
	cfg := t.cfg.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range m.GetBucketQuotaUsages() {
		id := u.GetBucketId()
		size := proto.Size(id)
		if len(id.GetBucket()) == 0 || size > maxID {
			return t.reject("bucket_id has %d keys in %d bytes, must be 1 or more in at most %d", len(id.GetBucket()), size, maxID)
		}
		b := t.bucket(id)
		if b.id == nil {
			overflow++
			if t.pending += size; t.pending > 64*maxID {
				return t.reject("more than %d bytes of ids wait for an assignment", 64*maxID)
			}
			b.pending = append(b.pending, id)
		}
		if b.id == nil || b.sent.IsZero() {
			select {
			case t.fresh <- struct{}{}:
			default:
			}
		}
		used := b.report(now, u.GetNumRequestsAllowed(), u.GetNumRequestsDenied(), cfg.Fleet.Interval)
		calls.add(b.class, used)
		b.owner.calls.add(b.class, used)
	}
	return nil
}

// run syncs with the board and sends assignments until ctx ends. Without buckets it waits.
func (t *stream) run(ctx context.Context, send func(*rlqs.RateLimitQuotaResponse) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.fresh:
		}
		err := t.serve(ctx, send)
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = t.fleet.Leave(leave, t.board) // the others find out after Hold
		cancel()
		if err != nil {
			return
		}
	}
}

// serve syncs and sends once per interval, and earlier for a new bucket, until there are no buckets.
func (t *stream) serve(ctx context.Context, send func(*rlqs.RateLimitQuotaResponse) error) error {
	for {
		began, interval := time.Now(), t.cfg.Load().Fleet.Interval
		if !t.offer(began) {
			return nil
		}
		within, cancel := context.WithTimeout(ctx, 2*interval)
		_ = t.fleet.Sync(within, began, t.board) // without it, the last levels apply
		cancel()
		if m := t.assign(time.Now()); len(m.GetBucketAction()) > 0 {
			t.count(func(s *Stats) { s.AssignmentsTotal += uint64(len(m.GetBucketAction())) })
			if err := send(m); err != nil {
				return err
			}
		}
		if err := t.pause(ctx, began, interval); err != nil {
			return err
		}
	}
}

// pause waits for the next interval, or for a quarter of it if a bucket needs an assignment.
func (t *stream) pause(ctx context.Context, began time.Time, interval time.Duration) error {
	regular := time.NewTimer(time.Until(began.Add(interval + rand.N(interval/10) - interval/20)))
	defer regular.Stop()
	soon := time.NewTimer(time.Until(began.Add(interval / 4)))
	defer soon.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-regular.C:
		return nil
	case <-soon.C:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-regular.C:
	case <-t.fresh:
	}
	return nil
}

// offer sends the reports to the fleet, and returns false if there are no buckets.
func (t *stream) offer(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	interval := t.cfg.Load().Fleet.Interval
	dt := interval
	if !t.last.IsZero() {
		dt = min(max(now.Sub(t.last), time.Millisecond), late*interval)
	}
	t.last = now
	shared := 0
	for _, c := range t.order {
		d := quota.Demand{Customer: c.name, Elapsed: dt}
		for _, b := range c.buckets {
			wants, used := b.demand(now, dt, interval)
			d.Offered[b.class] += float64(wants * dt.Seconds())
			d.Used += used
			d.Wants += wants
		}
		if c.name == "" || t.fleet.Lease(now, d).Unlisted {
			d.Customer = ""
			t.fleet.Lease(now, d)
			shared++
		}
	}
	t.shared = shared
	return len(t.order) > 0
}

// lease returns the grant of a customer. Customers that the fleet does not tell apart divide
// one grant.
func (t *stream) lease(now time.Time, d quota.Demand) quota.Grant {
	g := t.fleet.Lease(now, d)
	if g.Unlisted {
		d.Customer = ""
		g = t.fleet.Lease(now, d)
	}
	if d.Customer == "" {
		g.Rate /= float64(max(t.shared, 1))
	}
	return g
}

// assign returns the assignments to send, and forgets buckets without demand.
func (t *stream) assign(now time.Time) *rlqs.RateLimitQuotaResponse {
	m := new(rlqs.RateLimitQuotaResponse)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = 0
	cfg, kept := t.cfg.Load(), t.order[:0]
	for _, c := range t.order {
		c.forget(t, now, m)
		if len(c.buckets) == 0 {
			delete(t.customers, c.name)
			if !c.listed && c.name != "" {
				t.unlisted--
			}
			continue
		}
		kept = append(kept, c)
		wants := 0.
		for _, b := range c.buckets {
			wants += b.rate
		}
		g := t.lease(now, quota.Demand{Customer: c.name, Wants: wants})
		c.grant = g
		c.split(g.Rate, g.LeastClass)
		for _, b := range c.buckets {
			m.BucketAction = append(m.BucketAction, b.assign(now, cfg)...)
		}
	}
	clear(t.order[len(kept):])
	t.order = kept
	return m
}
