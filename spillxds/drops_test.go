package spillxds_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillxds"
)

// TestDroppedIsWhatCallersSaw overloads a limited HTTP client, while the load
// reporting server breaks the stream off twice, and adds up both sides. The
// interval is long enough for the client to notice before its next report, which
// would otherwise be lost.
func TestDroppedIsWhatCallersSaw(t *testing.T) {
	const wanted = 12_000
	p := newPlane(t)
	p.loads.interval = durationpb.New(150 * time.Millisecond)
	p.loads.cut = func(report int) bool { return report == 3 || report == 7 }
	p.push(cluster("users", 4))
	client := p.client(spillxds.Config{})
	users := must(client.Cluster(key("users")))
	limitOf(t, users, 4)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(2 * time.Millisecond)
		fmt.Fprint(w, "hello")
	}))
	defer backend.Close()
	transport := must(spillhttp.NewTransport(spillhttp.TransportConfig{
		Egress: users.Egress(egress.Config{ThrottleMode: spillway.ModeOff}),
		Base:   users.RoundTripper(nil),
	}))
	hc := &http.Client{Transport: transport}
	var rejected, served atomic.Uint64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for rejected.Load() < wanted || p.loads.streams() < 3 {
				resp, err := hc.Get(backend.URL)
				switch {
				case errors.Is(err, spillway.ErrRejected):
					rejected.Add(1)
					<-time.After(time.Millisecond)
				case err != nil:
					t.Error(err)
				default:
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					served.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	got, want := p.loads.users(), total{served.Load(), served.Load(), 0, rejected.Load()}
	t.Logf("%d rejected, %d served; %d streams of reports, %d reports", rejected.Load(), served.Load(), p.loads.streams(), p.loads.reports)
	if got != want {
		t.Errorf("reported %+v, callers saw %+v", got, want)
	}
	if p.loads.inProgress["users"] != 0 || len(p.loads.invalid) > 0 {
		t.Errorf("in progress %d, not valid: %v", p.loads.inProgress["users"], p.loads.invalid)
	}
}

// TestDroppedExactly is the same in virtual time, where no report can be under way
// when the stream breaks: every one of many breaks is exact.
func TestDroppedExactly(t *testing.T) {
	config := spillxds.Config{Reports: spillxds.Always}
	played(t, config, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		users.Limiter().SetMaxInFlight(4)
		var rejected, served, reported atomic.Uint64
		streams, stop := 0, make(chan struct{})
		serve := func(st *reports) {
			streams++
			<-st.requests
			st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(2 * time.Second)})
			for range 3 {
				select {
				case r := <-st.requests:
					reported.Add(said(r, "users").GetTotalDroppedRequests())
				case <-stop:
					return
				}
			}
			select {
			case <-time.After(time.Second):
				st.end <- errors.New("gone")
			case <-stop:
			}
		}
		var plane sync.WaitGroup
		plane.Go(func() {
			for {
				select {
				case st := <-s.reports:
					serve(st)
				case <-stop:
					return
				}
			}
		})
		limited := must(egress.New(users.Egress(egress.Config{ThrottleMode: spillway.ModeOff})))
		var callers sync.WaitGroup
		for range 16 {
			callers.Go(func() {
				for range 3000 {
					err := limited.Do(t.Context(), spillway.Call{}, func(context.Context, *egress.Attempt) error {
						time.Sleep(50 * time.Millisecond)
						served.Add(1)
						return nil
					})
					if errors.Is(err, spillway.ErrRejected) {
						rejected.Add(1)
						time.Sleep(20 * time.Millisecond)
					}
				}
			})
		}
		callers.Wait()
		time.Sleep(10 * time.Second)
		close(stop)
		plane.Wait()
		t.Logf("%d rejected, %d served, %d streams", rejected.Load(), served.Load(), streams)
		if reported.Load() != rejected.Load() || rejected.Load() < 10_000 || streams < 3 {
			t.Errorf("%d reported, callers saw %d", reported.Load(), rejected.Load())
		}
	})
}

// TestObservedRejectionsAreNoDrops has a gate that only observes: the requests went
// through.
func TestObservedRejectionsAreNoDrops(t *testing.T) {
	played(t, spillxds.Config{Reports: spillxds.Always}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		users.Limiter().SetMaxInFlight(0)
		var seen int
		observing := must(egress.New(users.Egress(egress.Config{
			InFlightMode: spillway.ModeObserve, Observer: spillway.ObserverFunc(func(spillway.Event) { seen++ }),
		})))
		enforcing := must(egress.New(users.Egress(egress.Config{})))
		works := func(context.Context, *egress.Attempt) error { return nil }
		for range 5 {
			if err := observing.Do(t.Context(), spillway.Call{}, works); err != nil {
				t.Error(err)
			}
			if err := enforcing.Do(t.Context(), spillway.Call{}, works); !errors.Is(err, spillway.ErrRejected) {
				t.Error(err)
			}
		}
		if seen == 0 {
			t.Error("the user's observer saw nothing")
		}
		st := <-s.reports
		<-st.requests
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true})
		if got := said(<-st.requests, "users").GetTotalDroppedRequests(); got != 5 {
			t.Errorf("%d drops reported, callers saw 5", got)
		}
	})
}
