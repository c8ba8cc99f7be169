package spillrlqs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// usage is a report of one bucket.
func usage(allowed uint64, id ...string) *rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage {
	m := map[string]string{}
	for i := 0; i+1 < len(id); i += 2 {
		m[id[i]] = id[i+1]
	}
	return &rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage{BucketId: &rlqs.BucketId{Bucket: m}, NumRequestsAllowed: allowed}
}

func reports(all ...*rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage) *rlqs.RateLimitQuotaUsageReports {
	return &rlqs.RateLimitQuotaUsageReports{Domain: "envoy", BucketQuotaUsages: all}
}

// connect opens a stream that ends with ctx.
func connect(t *testing.T, ctx context.Context, cc *grpc.ClientConn) rlqs.RateLimitQuotaService_StreamRateLimitQuotasClient {
	t.Helper()
	conn, err := rlqs.NewRateLimitQuotaServiceClient(cc).StreamRateLimitQuotas(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// unlisted has limits for mail and for each customer that is not listed.
func unlisted() Config {
	c := mail(1000)
	c.Fleet.Limits.DefaultLimit = quota.Limit{Rate: 10}
	return c
}

// Invented names fill all places. A listed customer has separate places, every bucket is
// answered, and the buckets without a place share one limit.
func TestInventedNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := unlisted()
		c.MaxStreamBuckets = 100
		c.MaxBuckets = 150
		s, cc := start(t, c)
		conn := connect(t, t.Context(), cc)
		for round := range 3 {
			var all []*rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage
			for i := range 1000 {
				all = append(all, usage(5, "customer", fmt.Sprint(round, "-", i)))
			}
			if err := conn.Send(reports(append(all, usage(5, "customer", "mail"))...)); err != nil {
				t.Fatal(err)
			}
			answered, rate, mailRate := 0, 0., 0.
			for answered < 1001 {
				m, err := conn.Recv()
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range m.GetBucketAction() {
					b := a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket()
					name := a.GetBucketId().GetBucket()["customer"]
					if r := rateOf(b); name == "mail" {
						mailRate = r
					} else if strings.HasPrefix(name, fmt.Sprint(round)) {
						rate += r
					}
					if name == "mail" || strings.HasPrefix(name, fmt.Sprint(round)) {
						answered++
					}
				}
				if round > 0 && answered == 900 { // mail and some places are not sent again
					break
				}
			}
			// 100 customers with 10/s each, at most, and one for all the others.
			if rate > 101*10*1.02 {
				t.Errorf("round %d: invented names have %v/s", round, rate)
			}
			if round == 0 && mailRate < 50 {
				t.Errorf("mail has %v/s", mailRate)
			}
			if st := s.Stats(time.Now()); st.Unlisted != 100 || st.Buckets != 1 {
				t.Errorf("round %d: %+v, want 100 buckets and one of mail", round, st)
			}
			time.Sleep(2 * time.Second)
			if round == 0 {
				break
			}
		}
		other := connect(t, t.Context(), cc)
		for i := range 100 {
			if err := other.Send(reports(usage(1, "customer", fmt.Sprint("other-", i)))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if st := s.Stats(time.Now()); st.Unlisted != 150 {
			t.Errorf("%d buckets in all, want 150", st.Unlisted)
		}
	})
}

// Buckets without demand are abandoned, and a stream without buckets does not use the board.
func TestIdleStreamsCostNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := unlisted()
		board := &counting{Board: fleet.NewMemory(time.Now), syncs: map[string]int{}}
		c.Board = board
		s, cc := start(t, c)
		e := newEnvoy(t, t.Context(), cc, 1)
		newEnvoy(t, t.Context(), cc, 2) // reports nothing
		y := &tally{began: time.Now(), cells: map[int]map[string]*[2]float64{}}
		e.drive(y, 80*time.Second, func(at time.Duration) []flow {
			if at > 5*time.Second {
				return nil
			}
			return []flow{{"mail", "CRITICAL", 100}, {"new", "CRITICAL", 5}}
		})
		e.mu.Lock()
		defer e.mu.Unlock()
		if st := s.Stats(time.Now()); st.Buckets != 0 || st.Unlisted != 0 || st.Streams != 2 || e.abandoned != 2 {
			t.Errorf("%+v, %d abandoned, want no buckets, 2 streams and 2", st, e.abandoned)
		}
		board.reset()
		time.Sleep(time.Minute)
		if syncs := board.reset(); len(syncs) != 1 {
			t.Errorf("%v use the board, want the server alone", syncs)
		}
	})
}

// counting counts who syncs.
type counting struct {
	fleet.Board

	mu    sync.Mutex
	syncs map[string]int
}

func (c *counting) reset() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.syncs
	c.syncs = map[string]int{}
	return last
}

func (c *counting) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	c.mu.Lock()
	c.syncs[s.Task]++
	c.mu.Unlock()
	return c.Board.Sync(ctx, s)
}

// All places are given back when streams end.
func TestStreamsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := unlisted()
		c.MaxStreams = 2
		s, cc := start(t, c)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			for range 2 {
				if err := connect(t, ctx, cc).Send(reports(usage(1, "customer", "a"), usage(1, "customer", "mail"))); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if _, err := connect(t, ctx, cc).Recv(); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("a third stream: %v, want RESOURCE_EXHAUSTED", err)
			}
			if st := s.Stats(time.Now()); st.Streams != 2 || st.Buckets != 2 || st.Unlisted != 2 {
				t.Errorf("%+v, want 2 of each", st)
			}
			cancel()
			time.Sleep(time.Second)
			if st := s.Stats(time.Now()); st.Streams != 0 || st.Buckets != 0 || st.Unlisted != 0 {
				t.Errorf("%+v after the end, want none", st)
			}
		}
	})
}

func TestBadReports(t *testing.T) {
	many := reports()
	for range 40 {
		many.BucketQuotaUsages = append(many.BucketQuotaUsages, usage(1, "customer", strings.Repeat("x", maxID-100)))
	}
	for name, m := range map[string]*rlqs.RateLimitQuotaUsageReports{
		"other domain": {Domain: "other"},
		"no id":        reports(&rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage{}),
		"empty id":     reports(usage(1)),
		"huge id":      reports(usage(1, "customer", strings.Repeat("x", maxID))),
		"many":         many,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := unlisted()
				c.Domain = "envoy"
				_, cc := start(t, c)
				conn := connect(t, t.Context(), cc)
				for range 3 { // the last two within the same interval
					_ = conn.Send(m)
				}
				var err error
				for err == nil {
					_, err = conn.Recv()
				}
				if status.Code(err) != codes.InvalidArgument {
					t.Errorf("%v, want INVALID_ARGUMENT", err)
				}
			})
		})
	}
}

// An Envoy that does not read blocks only its own stream.
func TestEnvoyThatDoesNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := unlisted()
		c.MaxBuckets, c.MaxStreamBuckets, c.Fleet.MaxUnlisted = 100_000, 100_000, 100_000
		_, cc := start(t, c)
		deaf := connect(t, t.Context(), cc)
		for round := range 10 {
			var all []*rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage
			for i := range 2000 {
				all = append(all, usage(5, "customer", fmt.Sprint(round, "-", i)))
			}
			if err := deaf.Send(reports(all...)); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		y := &tally{began: time.Now(), cells: map[int]map[string]*[2]float64{}}
		e := newEnvoy(t, t.Context(), cc, 1)
		e.drive(y, 30*time.Second, func(time.Duration) []flow { return []flow{{"mail", "CRITICAL", 2000}} })
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.expired > 0 {
			t.Errorf("%d requests after the assignment had expired", e.expired)
		}
		all, _ := y.sum(15, 30, "")
		within(t, "admitted", all/1000, 0.9, 1.1)
	})
}

// A customer without a limit is not limited: DefaultLimit is none unless it is set. The last id has no place in memory.
func TestCustomersWithoutALimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := mail(1000)
		c.MaxStreamBuckets = 3
		_, cc := start(t, c)
		conn := connect(t, t.Context(), cc)
		err := conn.Send(reports(
			usage(5, "customer", "a"), usage(5, "customer", "a", "criticality", "SHEDDABLE"), usage(5, "path", "/"), usage(5, "customer", "b"),
		))
		if err != nil {
			t.Fatal(err)
		}
		for answered := 0; answered < 4; {
			m, err := conn.Recv()
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range m.GetBucketAction() {
				answered++
				rule := a.GetQuotaAssignmentAction().GetRateLimitStrategy()
				if rule.GetBlanketRule() != envoytype.RateLimitStrategy_ALLOW_ALL || rule.GetTokenBucket() != nil {
					t.Errorf("%v: %v, want ALLOW_ALL", a.GetBucketId().GetBucket(), rule)
				}
			}
		}
	})
}

// Whatever an Envoy sends, the server keeps to its bounds.
func FuzzReports(f *testing.F) {
	for _, m := range []*rlqs.RateLimitQuotaUsageReports{
		reports(usage(5, "customer", "mail", "criticality", "SHEDDABLE"), usage(1<<63, "customer", "x")),
		reports(usage(0, "other", "x")), {},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(rlqs.RateLimitQuotaUsageReports)
		if proto.Unmarshal(b, m) != nil {
			return
		}
		c := unlisted()
		c.MaxStreamBuckets = 3
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.begin()
		if err != nil {
			t.Fatal(err)
		}
		for now := range 5 {
			at := t0.Add(time.Duration(now) * time.Second)
			_ = st.receive(at, m)
			st.offer(at)
			for _, a := range st.assign(at).GetBucketAction() {
				if err := a.GetQuotaAssignmentAction().ValidateAll(); err != nil {
					t.Fatal(err)
				}
				if r := rateOf(a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket()); r > 1000*1.02 {
					t.Fatalf("rate %v", r)
				}
			}
			if st.places[0] > 3 || st.places[1] > 3 || len(st.buckets) != st.places[0]+st.places[1] {
				t.Fatalf("places %v for %d buckets", st.places, len(st.buckets))
			}
		}
		st.close()
		if now := s.Stats(time.Now()); now.Streams != 0 || now.Buckets != 0 || now.Unlisted != 0 {
			t.Fatalf("%+v", now)
		}
	})
}
