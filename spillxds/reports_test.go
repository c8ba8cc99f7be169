package spillxds_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillxds"
)

func TestCountsByLocality(t *testing.T) {
	p := newPlane(t)
	p.push(cluster("users", 100))
	backends := map[string]*httptest.Server{}
	zones := map[string]string{}
	for _, zone := range []string{"z1", "z2"} {
		backends[zone] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/fail":
				w.WriteHeader(http.StatusInternalServerError)
			case "/hang-up":
				panic(http.ErrAbortHandler)
			case "/half":
				w.Header().Set("Content-Length", "100")
				fmt.Fprint(w, "half")
			case "/wrong":
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		defer backends[zone].Close()
		zones[strings.TrimPrefix(backends[zone].URL, "http://")] = zone
	}
	client := p.client(spillxds.Config{Locality: func(endpoint string) spillxds.Locality {
		return spillxds.Locality{Region: "r", Zone: zones[endpoint]}
	}})
	users := must(client.Cluster(key("users")))
	limitOf(t, users, 100)
	transport := must(spillhttp.NewTransport(spillhttp.TransportConfig{
		Egress: users.Egress(egress.Config{}), Base: users.RoundTripper(http.DefaultTransport),
	}))
	hc := &http.Client{Transport: transport}
	get := func(zone, path string) {
		req := must(http.NewRequest(http.MethodPost, backends[zone].URL+path, nil))
		resp, err := hc.Do(req)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	for _, path := range []string{"/", "/", "/fail", "/hang-up", "/half", "/wrong"} {
		get("z1", path)
	}
	get("z2", "/")
	eventually(t, "everything is reported", func() bool { return p.loads.users().issued == 7 })
	want := map[string]total{"z1": {6, 3, 3, 0}, "z2": {1, 1, 0, 0}}
	eventually(t, "all ends are reported", func() bool {
		s := p.loads.users()
		return s.succeeded+s.failed == 7
	})
	p.loads.mu.Lock()
	defer p.loads.mu.Unlock()
	for zone, w := range want {
		if got := p.loads.localities[zone]; got != w {
			t.Errorf("%s: %+v, want %+v", zone, got, w)
		}
	}
	if len(p.loads.invalid) > 0 {
		t.Error(p.loads.invalid)
	}
	first := p.loads.first[0]
	if features := first.GetNode().GetClientFeatures(); len(first.GetClusterStats()) != 0 || features[len(features)-1] != "envoy.lrs.supports_send_all_clusters" {
		t.Errorf("first request: %v", first)
	}
}

// said returns what a report says of a cluster.
func said(r *lrsv3.LoadStatsRequest, name string) *endpointv3.ClusterStats {
	for _, c := range r.GetClusterStats() {
		if c.GetClusterName() == name {
			return c
		}
	}
	return nil
}

func TestIntervals(t *testing.T) {
	config := spillxds.Config{Reports: spillxds.Always}
	played(t, config, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		must(c.Cluster(key("cart")))
		st := <-s.reports
		<-st.requests
		time.Sleep(time.Hour + time.Second)
		if n := len(st.requests); n != 0 {
			t.Fatalf("%d reports before the server has asked for any", n)
		}
		for name, row := range map[string]struct{ asked, want time.Duration }{
			"zero":     {0, time.Second},
			"negative": {-time.Hour, time.Second},
			"tiny":     {time.Nanosecond, time.Second},
			"usual":    {10 * time.Second, 10 * time.Second},
			"for ever": {1 << 62, time.Hour},
		} {
			st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(row.asked)})
			<-st.requests // the one that may be due, and else the next
			for range 3 {
				start := time.Now()
				<-st.requests
				if got := time.Since(start); got != row.want {
					t.Errorf("%s: a report after %v, want %v", name, got, row.want)
				}
			}
			if got := c.Stats(time.Now()).Interval; got != row.want {
				t.Errorf("%s: Stats say %v", name, got)
			}
		}
		st.Send(&lrsv3.LoadStatsResponse{Clusters: []string{"users", "nobody"}}) // no interval at all
		<-st.requests
		users.Limiter().Reject()
		must(c.Cluster(key("cart"))).Limiter().Reject()
		r := <-st.requests
		if said(r, "users").GetTotalDroppedRequests() != 1 || said(r, "cart") != nil {
			t.Errorf("report: %v", r)
		}
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true})
		<-st.requests
		synctest.Wait()
	})
}

// TestPutBack breaks the stream off between reports, again and again.
func TestPutBack(t *testing.T) {
	config := spillxds.Config{Reports: spillxds.Always}
	played(t, config, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		users.Limiter().SetMaxInFlight(0)
		load := users.Load(spillxds.Locality{Zone: "z"})
		var dropped, issued uint64
		var spans time.Duration
		var first time.Time
		for n := range 20 {
			st := <-s.reports
			if first.IsZero() {
				first = time.Now()
			}
			<-st.requests
			st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(5 * time.Second)})
			users.Limiter().TryAcquire()
			load.Begin()
			load.End(n%2 == 0)
			if n%3 != 0 { // the stream ends before the report is due
				time.Sleep(4 * time.Second)
				st.end <- errors.New("gone")
				continue
			}
			r := <-st.requests
			dropped += said(r, "users").GetTotalDroppedRequests()
			u := said(r, "users").GetUpstreamLocalityStats()
			if len(u) != 1 || u[0].GetLocality().GetZone() != "z" {
				t.Fatalf("localities: %v", u)
			}
			issued += u[0].GetTotalIssuedRequests()
			spans += said(r, "users").GetLoadReportInterval().AsDuration()
			if d := time.Since(first) - spans; d > time.Second || d < -time.Second {
				t.Errorf("the intervals of the reports leave out %v", d)
			}
			st.end <- errors.New("gone")
		}
		st := <-s.reports
		<-st.requests
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Hour)})
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		last := said(<-st.requests, "users")
		if dropped += last.GetTotalDroppedRequests(); dropped != 20 {
			t.Errorf("%d drops reported of 20", dropped)
		}
		if issued += last.GetUpstreamLocalityStats()[0].GetTotalIssuedRequests(); issued != 20 {
			t.Errorf("%d requests reported of 20", issued)
		}
	})
}

// TestIntervalLeavesSilenceOut has load after an hour without any: a report covers
// the time since the one before, whether that had something to say or not.
func TestIntervalLeavesSilenceOut(t *testing.T) {
	played(t, spillxds.Config{Reports: spillxds.Always}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.reports
		<-st.requests
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(10 * time.Second)})
		for range 360 {
			<-st.requests
		}
		users.Limiter().Reject()
		if got := said(<-st.requests, "users").GetLoadReportInterval().AsDuration(); got != 10*time.Second {
			t.Errorf("a report on %v, want the 10 s since the last", got)
		}
	})
}

// TestReportsNameTheService has limits for an EDS service about which the control plane
// has said nothing.
func TestReportsNameTheService(t *testing.T) {
	played(t, spillxds.Config{Reports: spillxds.Always}, func(t *testing.T, s *script, c *spillxds.Client) {
		must(c.Cluster(inflight.Key{Cluster: "users", Service: "blue"})).Limiter().Reject()
		st := <-s.reports
		<-st.requests
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true})
		if got := said(<-st.requests, "users").GetClusterServiceName(); got != "blue" {
			t.Errorf("a report on the service %q", got)
		}
	})
}

// TestLastReportOnAnotherStream closes a Client when its stream has just broken: there
// is time for another.
func TestLastReportOnAnotherStream(t *testing.T) {
	for range 10 { // by chance it notices the one or the other first
		lastReportOnAnotherStream(t)
	}
}

func lastReportOnAnotherStream(t *testing.T) {
	var goOn chan bool
	config := spillxds.Config{Reports: spillxds.Always, FlushTimeout: 5 * time.Second, DoesNotExist: -1}
	config.Observer = func(e spillxds.Event) {
		if e.Kind == spillxds.Reporting {
			<-goOn // reports wait for their Observer
		}
	}
	played(t, config, func(t *testing.T, s *script, c *spillxds.Client) {
		goOn = make(chan bool) // of this bubble
		users := must(c.Cluster(key("users")))
		<-(<-s.streams).requests // of which everything is told
		st := <-s.reports
		<-st.requests
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Hour)})
		time.Sleep(time.Minute)
		users.Limiter().Reject()
		st.end <- errors.New("gone")
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		close(goOn)
		st = <-s.reports
		<-st.requests
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Hour)})
		if got := said(<-st.requests, "users").GetTotalDroppedRequests(); got != 1 {
			t.Errorf("%d drops reported in the end", got)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// TestDropsAloneMakeAValidReport is about the worst overload: nothing is sent.
func TestDropsAloneMakeAValidReport(t *testing.T) {
	played(t, spillxds.Config{Reports: spillxds.Always}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		st := <-s.reports
		<-st.requests
		st.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true})
		users.Limiter().Reject()
		r := <-st.requests
		if err := r.ValidateAll(); err != nil || said(r, "users").GetTotalDroppedRequests() != 1 {
			t.Errorf("%v: %v", err, r)
		}
		users.Limiter().TryAcquire()
		r = <-st.requests
		if got := said(r, "users").GetUpstreamLocalityStats()[0].GetTotalRequestsInProgress(); got != 1 {
			t.Errorf("%d in progress where only the limiter counts", got)
		}
		users.Limiter().Reject()
		users.Close() // what it counted is still reported
		if n := len(c.Stats(time.Now()).Clusters); n != 0 {
			t.Errorf("%d clusters", n)
		}
		if got := said(<-st.requests, "users").GetTotalDroppedRequests(); got != 1 {
			t.Errorf("%d drops reported after Close of the Cluster", got)
		}
		users.Limiter().Release()
		<-st.requests
		if r := <-st.requests; len(r.GetClusterStats()) != 0 {
			t.Errorf("still reported: %v", r)
		}
	})
}

func TestReportsPolicy(t *testing.T) {
	for _, row := range []struct {
		reports spillxds.Reports
		told    bool
		want    int
	}{
		{spillxds.AsTold, true, 1}, {spillxds.AsTold, false, 0}, {spillxds.Always, false, 1}, {spillxds.Never, true, 0},
	} {
		played(t, spillxds.Config{Reports: row.reports}, func(t *testing.T, s *script, c *spillxds.Client) {
			users := must(c.Cluster(key("users")))
			resource := cluster("users", 5)
			if !row.told {
				resource.LrsServer = nil
			}
			st := <-s.streams
			st.send(answer("1", "a", resource))
			limit(t, users, 5)
			if n := len(s.reports); n != row.want {
				t.Errorf("%+v: %d streams of reports", row, n)
			}
		})
	}
}

func TestCloseTellsWhatWasNotReported(t *testing.T) {
	played(t, spillxds.Config{Reports: spillxds.Always}, func(t *testing.T, s *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		<-s.reports // which never asks
		for range 7 {
			users.Limiter().Reject()
		}
		start := time.Now()
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "7 dropped requests") {
			t.Errorf("Close: %v", err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("closed after %v", d)
		}
	})
}

// TestCloseDoesNotWaitForWishes has a server that says its interval after the last
// report, too.
func TestCloseDoesNotWaitForWishes(t *testing.T) {
	const patience = 3 * time.Second
	p := newPlane(t)
	p.loads.interval = durationpb.New(time.Hour)
	client := p.client(spillxds.Config{Reports: spillxds.Always, FlushTimeout: patience})
	must(client.Cluster(key("users"))).Limiter().Reject()
	eventually(t, "the server has asked", func() bool { return client.Stats(time.Now()).Interval > 0 })
	p.loads.change <- &lrsv3.LoadStatsResponse{SendAllClusters: true}
	start := time.Now()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d >= patience || p.loads.users().dropped != 1 {
		t.Errorf("closed after %v, with %d drops reported", d, p.loads.users().dropped)
	}
}

func TestLoadIsBounded(t *testing.T) {
	p := newPlane(t)
	users := must(p.client(spillxds.Config{}).Cluster(key("users")))
	all := map[*spillxds.Load]bool{}
	for i := range 1000 {
		l := spillxds.Locality{Zone: fmt.Sprint(i)}
		load := users.Load(l)
		all[load] = true
		if again := users.Load(l); again != load {
			t.Fatal("a locality has two counts")
		}
	}
	if len(all) != 257 {
		t.Errorf("%d localities are told apart", len(all))
	}
}
