package spillrlqs

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/quota"
)

// entries makes a descriptor of keys and values.
func entries(pairs ...string) *descriptor.RateLimitDescriptor {
	d := new(descriptor.RateLimitDescriptor)
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &descriptor.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

func request(hits uint32, all ...*descriptor.RateLimitDescriptor) *ratelimit.RateLimitRequest {
	return &ratelimit.RateLimitRequest{Domain: "envoy", Descriptors: all, HitsAddend: hits}
}

// One task, limit 100/s with a burst of 100: what a request is charged shows in how many are admitted.
func TestWhatRequestsAreCharged(t *testing.T) {
	mail, other := entries("customer", "mail"), entries("customer", "other")
	free := entries("customer", "mail")
	free.HitsAddend = wrapperspb.UInt64(0)
	ten := entries("customer", "mail")
	ten.HitsAddend = wrapperspb.UInt64(10)
	for name, row := range map[string]struct {
		request *ratelimit.RateLimitRequest
		want    int
	}{
		"one":                              {request(0, mail), 75},
		"one with hits":                    {request(5, mail), 15},
		"hits of the descriptor":           {request(5, ten), 8},
		"no hits":                          {request(5, free), 1000},
		"one customer in two descriptors":  {request(0, mail, entries("customer", "mail", "path", "/")), 75},
		"descriptors without a customer":   {request(0, mail, entries("generic_key", "x")), 75},
		"SHEDDABLE":                        {request(0, entries("customer", "mail", "criticality", "SHEDDABLE")), 25},
		"CRITICAL_PLUS":                    {request(0, entries("customer", "mail", "criticality", "critical_plus")), 100},
		"a class that does not exist":      {request(0, entries("customer", "mail", "criticality", "x")), 75},
		"a customer with a lower limit":    {request(0, mail, other), 15},
		"no customer at all":               {request(0, entries("generic_key", "x")), 8},
		"names that are too long, as none": {request(0, entries("customer", strings.Repeat("x", 1000))), 8},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := unlisted()
				c.Fleet.Tasks = 1
				c.Fleet.Limits.Customers = map[string]quota.Limit{"mail": {Rate: 100}, "other": {Rate: 20}}
				_, cc := start(t, c)
				time.Sleep(20 * time.Second) // the first levels
				admitted := 0
				for range 1000 {
					m, err := ratelimit.NewRateLimitServiceClient(cc).ShouldRateLimit(t.Context(), row.request)
					if err != nil {
						t.Fatal(err)
					}
					if len(m.GetStatuses()) != len(row.request.GetDescriptors()) {
						t.Fatalf("%d statuses, want %d", len(m.GetStatuses()), len(row.request.GetDescriptors()))
					}
					if m.GetOverallCode() == ratelimit.RateLimitResponse_OK {
						admitted++
					} else if !slices.ContainsFunc(m.GetStatuses(), func(s *ratelimit.RateLimitResponse_DescriptorStatus) bool {
						return s.GetCode() == ratelimit.RateLimitResponse_OVER_LIMIT && s.GetDurationUntilReset().AsDuration() > 0
					}) {
						t.Fatalf("%v: no status says why", m)
					}
				}
				if admitted != row.want {
					t.Errorf("%d are admitted, want %d", admitted, row.want)
				}
			})
		})
	}
}

// A request that one customer's limit rejects costs the others nothing.
func TestARejectedRequestCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := unlisted()
		c.Fleet.Tasks = 1
		c.Fleet.Limits.Customers = map[string]quota.Limit{"mail": {Rate: 100}, "other": {Rate: 20}}
		s, cc := start(t, c)
		time.Sleep(20 * time.Second)
		admitted := 0
		ask := func(n int, all ...*descriptor.RateLimitDescriptor) {
			for range n {
				m, err := ratelimit.NewRateLimitServiceClient(cc).ShouldRateLimit(t.Context(), request(0, all...))
				if err != nil {
					t.Fatal(err)
				}
				if m.GetOverallCode() == ratelimit.RateLimitResponse_OK {
					admitted++
				}
			}
		}
		ask(500, entries("customer", "mail"), entries("customer", "other"))
		ask(500, entries("customer", "mail"))
		if admitted != 75 {
			t.Errorf("%d are admitted, want the 75 of mail", admitted)
		}
		if st := s.Stats(time.Now()); st.OKTotal != 75 || st.OverLimitTotal != 925 {
			t.Errorf("%+v, want 75 OK and 925 OVER_LIMIT", st)
		}
	})
}

func TestBadRequests(t *testing.T) {
	refund := entries("customer", "mail")
	refund.IsNegativeHits = true
	huge := entries("customer", "mail")
	huge.HitsAddend = wrapperspb.UInt64(1 << 63)
	var many []*descriptor.RateLimitDescriptor
	for i := range maxDescriptors + 1 {
		many = append(many, entries("customer", fmt.Sprint(i)))
	}
	c := unlisted()
	c.Domain = "envoy"
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*ratelimit.RateLimitRequest{
		"nil":                 nil,
		"other domain":        {Domain: "other", Descriptors: []*descriptor.RateLimitDescriptor{refund}},
		"no descriptors":      request(0),
		"too many":            request(0, many...),
		"negative":            request(0, refund),
		"huge":                request(0, huge),
		"huge in the request": request(1<<31, entries("customer", "mail")),
	} {
		if _, err := (limitService{s: s}).ShouldRateLimit(t.Context(), r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want INVALID_ARGUMENT", name, err)
		}
	}
	if st := s.Stats(time.Now()); st.RejectedTotal != 7 {
		t.Errorf("%d rejected, want 7", st.RejectedTotal)
	}
}

// Over loopback, 99 of 100 answers come within a millisecond.
func TestTimeOfAnAnswer(t *testing.T) {
	if !*measure {
		t.Skip("for an idle machine: -measure")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, mail(1000), l)
	cc := dial(t, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	})
	client := ratelimit.NewRateLimitServiceClient(cc)
	var all []time.Duration
	for range 20000 {
		began := time.Now()
		if _, err := client.ShouldRateLimit(t.Context(), request(0, entries("customer", "mail"))); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	t.Logf("p50 %v, p99 %v, p99.9 %v", all[len(all)/2], all[len(all)*99/100], all[len(all)*999/1000])
	within(t, "p99 in ms", all[len(all)*99/100].Seconds()*1000, 0, 1)
}

func BenchmarkDecision(b *testing.B) {
	s, err := New(mail(1e9))
	if err != nil {
		b.Fatal(err)
	}
	r := request(0, entries("customer", "mail", "criticality", "SHEDDABLE"))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = limitService{s: s}.ShouldRateLimit(b.Context(), r)
	}
}
