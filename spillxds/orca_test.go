package spillxds_test

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	orcaservice "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillxds"
)

// A task is a server with its own gates, whose utilization is what other work
// there takes and a thousandth for each request per second.
type task struct {
	addr   string
	other  atomic.Uint64 // bits of a utilization
	calls  atomic.Uint64
	served atomic.Uint64
}

func (k *task) signal() func() float64 {
	last, at, rate := uint64(0), time.Now(), 0.0
	return func() float64 {
		now, n := time.Now(), k.served.Load()
		d := now.Sub(at).Seconds()
		rate += (float64(n-last)/d - rate) * min(d/0.2, 1)
		last, at = n, now
		return math.Float64frombits(k.other.Load()) + rate/1000
	}
}

func newTask(t *testing.T, rate float64) *task {
	k := new(task)
	gates := must(ingress.New(ingress.Config{
		Load:      load.Config{Interval: 10 * time.Millisecond, Targets: load.Targets{Memory: -1}, Signals: []load.Signal{{Name: "task", Read: k.signal()}}},
		RateLimit: ratelimit.Config{Rate: rate}, ShedMode: spillway.ModeOff,
	}))
	orca := must(spillxds.NewOrca(spillxds.OrcaConfig{
		Server: gates, Interval: 10 * time.Millisecond, Smoothing: 200 * time.Millisecond, MinOutOfBand: 10 * time.Millisecond,
		Utilization: func(s load.Stats) float64 { return s.Utilization }, // all tasks of the test run in one process
	}))
	b := &backend{unary: func(ctx context.Context) error {
		k.calls.Add(1)
		slot, rejection := gates.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
		if rejection.Rejected() {
			return status.Error(codes.Unavailable, "rejected")
		}
		defer slot.Done(spillway.OutcomeServed)
		k.served.Add(1)
		return nil
	}}
	addr, stop := serveWith(t, b, "127.0.0.1:0", orca.Register,
		grpc.UnaryInterceptor(orca.UnaryInterceptor), grpc.StreamInterceptor(orca.StreamInterceptor))
	k.addr = addr
	t.Cleanup(func() { orca.Close(); stop(); gates.Close() })
	return k
}

// balanced returns a client of weighted_round_robin over tasks.
func balanced(t *testing.T, config string, tasks []*task) testgrpc.TestServiceClient {
	r := manual.NewBuilderWithScheme("tasks")
	var state resolver.State
	for _, k := range tasks {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: k.addr}}})
	}
	r.InitialState(state)
	conn := must(grpc.NewClient("tasks:///", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"weighted_round_robin":`+config+`}]}`)))
	t.Cleanup(func() { conn.Close() })
	return testgrpc.NewTestServiceClient(conn)
}

// shares makes calls for d, at most 600 a second, and returns what share of them
// each task got in the second half.
func shares(client testgrpc.TestServiceClient, tasks []*task, d time.Duration) []float64 {
	half, end := time.Now().Add(d/2), time.Now().Add(d)
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for time.Now().Before(end) {
				client.UnaryCall(context.Background(), new(testgrpc.SimpleRequest))
				<-tick.C
			}
		})
	}
	<-time.After(time.Until(half))
	before := make([]float64, len(tasks))
	for i, k := range tasks {
		before[i] = float64(k.calls.Load())
	}
	callers.Wait()
	all := 0.0
	for i, k := range tasks {
		before[i] = float64(k.calls.Load()) - before[i]
		all += before[i]
	}
	for i := range before {
		before[i] /= all
	}
	return before
}

// TestWeightedRoundRobin makes one of three tasks busy, by other work or by having
// it reject most of what it gets, and looks at where the standard policy of grpc-go
// sends requests.
func TestWeightedRoundRobin(t *testing.T) {
	if testing.Short() {
		t.Skip("watches for seconds")
	}
	const trailers = `{"blackoutPeriod":"0s","weightUpdatePeriod":"0.1s"}`
	for name, row := range map[string]struct {
		config string
		rate   float64 // limit of the first task
		other  float64 // utilization of it by other work
	}{
		"busy, in trailers":   {trailers, 0, 0.2},
		"busy, out of band":   {`{"blackoutPeriod":"0s","weightUpdatePeriod":"0.1s","enableOobLoadReport":true,"oobReportingPeriod":"0.05s"}`, 0, 0.2},
		"rejecting, trailers": {trailers, 40, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := []float64{row.rate, 0, 0}
			var tasks []*task
			for _, rate := range limits {
				tasks = append(tasks, newTask(t, rate))
			}
			client := balanced(t, row.config, tasks)
			if row.rate == 0 {
				idle := shares(client, tasks, 600*time.Millisecond)
				t.Logf("all idle: %.3f", idle)
				if idle[0] < 0.23 || idle[0] > 0.43 {
					t.Errorf("an idle task gets %.3f of the load", idle[0])
				}
			}
			tasks[0].other.Store(math.Float64bits(row.other))
			busy := shares(client, tasks, 2*time.Second)
			t.Logf("one busy: %.3f", busy)
			if busy[0] > 0.23 {
				t.Errorf("a busy task gets %.3f of the load", busy[0])
			}
		})
	}
}

// newOrca returns an Orca of gates that reject all but one request a day.
func newOrca(t *testing.T, c spillxds.OrcaConfig) (*spillxds.Orca, *ingress.Server) {
	t.Helper()
	c.Server = must(ingress.New(ingress.Config{RateLimit: ratelimit.Config{Rate: 1. / 86400}, ShedMode: spillway.ModeOff}))
	orca := must(spillxds.NewOrca(c))
	t.Cleanup(func() { orca.Close(); c.Server.Close() })
	return orca, c.Server
}

func TestReportTellsRejections(t *testing.T) {
	orca, gates := newOrca(t, spillxds.OrcaConfig{Smoothing: time.Second})
	now := time.Now()
	if r := orca.Report(now); r.GetEps() != 0 || r.GetRpsFractional() != 0 {
		t.Errorf("before any request: %v", r)
	}
	for range 101 {
		p, _ := gates.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{})
		p.Done(spillway.OutcomeServed)
	}
	if r := orca.Report(now.Add(50 * time.Millisecond)); r.GetEps() != 0 {
		t.Errorf("made anew before its time: %v", r)
	}
	r := orca.Report(now.Add(time.Second))
	if r.GetEps() < 60 || r.GetEps() > 160 || r.GetApplicationUtilization() < 1.9 {
		t.Errorf("after a second of rejections: %v", r)
	}
	r = orca.Report(now.Add(time.Minute))
	if r.GetEps() > 2 {
		t.Errorf("a minute later: %v", r)
	}
}

// TestReportTellsWhatWasRejected has gates that reject, and gates that only say that
// they would: what was served all the same moves no load away.
func TestReportTellsWhatWasRejected(t *testing.T) {
	limits := ratelimit.Config{Rate: 1. / 86400}
	for name, row := range map[string]struct {
		config   ingress.Config
		rejected bool
	}{
		"rate, observed":      {ingress.Config{RateLimit: limits, RateLimitMode: spillway.ModeObserve, ShedMode: spillway.ModeOff}, false},
		"in flight":           {ingress.Config{MaxInFlight: 1, ShedMode: spillway.ModeOff}, true},
		"in flight, observed": {ingress.Config{MaxInFlight: 1, InFlightMode: spillway.ModeObserve, ShedMode: spillway.ModeOff}, false},
	} {
		synctest.Test(t, func(t *testing.T) { // requests wait before they are rejected
			gates := must(ingress.New(row.config))
			orca := must(spillxds.NewOrca(spillxds.OrcaConfig{
				Server: gates, Smoothing: time.Second, Utilization: func(load.Stats) float64 { return 0.5 },
			}))
			now := time.Now()
			held, _ := gates.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{})
			for range 100 {
				p, rejection := gates.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{})
				if rejection.Rejected() != row.rejected {
					t.Fatalf("%s: %+v", name, rejection)
				}
				p.Done(spillway.OutcomeServed)
			}
			r := orca.Report(now.Add(time.Second))
			if got := r.GetEps() > 50; got != row.rejected {
				t.Errorf("%s: %v errors per second", name, r.GetEps())
			}
			if got := r.GetApplicationUtilization() > 1; got != row.rejected {
				t.Errorf("%s: a utilization of %v", name, r.GetApplicationUtilization())
			}
			held.Done(spillway.OutcomeServed)
			orca.Close()
			gates.Close()
		})
	}
}

// TestUtilizationThatIsNone has a function of the user that does not know.
func TestUtilizationThatIsNone(t *testing.T) {
	for _, value := range []float64{math.NaN(), -1, math.Inf(-1)} {
		orca, _ := newOrca(t, spillxds.OrcaConfig{Utilization: func(load.Stats) float64 { return value }})
		if r := orca.Report(time.Now()); r.GetApplicationUtilization() != 0 {
			t.Errorf("%v: reported as %v", value, r.GetApplicationUtilization())
		}
	}
}

func TestTrailerOfAnswersAndRejections(t *testing.T) {
	orca, _ := newOrca(t, spillxds.OrcaConfig{})
	fail := false
	b := &backend{unary: func(context.Context) error {
		if fail {
			return status.Error(codes.Unavailable, "rejected")
		}
		return nil
	}}
	addr, stop := serve(t, b, "127.0.0.1:0", grpc.UnaryInterceptor(orca.UnaryInterceptor), grpc.StreamInterceptor(orca.StreamInterceptor))
	defer stop()
	conn := must(grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer conn.Close()
	calls := testgrpc.NewTestServiceClient(conn)
	has := func(md metadata.MD) {
		t.Helper()
		var r orcapb.OrcaLoadReport
		if v := md["endpoint-load-metrics-bin"]; len(v) != 1 || proto.Unmarshal([]byte(v[0]), &r) != nil {
			t.Errorf("trailer: %v", md)
		}
	}
	for _, fail = range []bool{false, true} {
		var md metadata.MD
		if _, err := calls.UnaryCall(t.Context(), new(testgrpc.SimpleRequest), grpc.Trailer(&md)); (err != nil) != fail {
			t.Error(err)
		}
		has(md)
	}
	st := must(calls.FullDuplexCall(t.Context()))
	st.Send(new(testgrpc.StreamingOutputCallRequest))
	for {
		if _, err := st.Recv(); err != nil {
			break
		}
	}
	has(st.Trailer())
}

func TestHeaderOfHTTP(t *testing.T) {
	orca, _ := newOrca(t, spillxds.OrcaConfig{})
	w := httptest.NewRecorder()
	orca.Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	text, err := base64.StdEncoding.DecodeString(w.Header().Get("endpoint-load-metrics-bin"))
	var r orcapb.OrcaLoadReport
	if err != nil || proto.Unmarshal(text, &r) != nil || w.Code != http.StatusNotFound {
		t.Errorf("%v: %v", err, w.Header())
	}
}

func TestOutOfBand(t *testing.T) {
	orca, _ := newOrca(t, spillxds.OrcaConfig{MinOutOfBand: 30 * time.Millisecond})
	addr, stop := serveWith(t, &backend{}, "127.0.0.1:0", orca.Register)
	defer stop()
	conn := must(grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer conn.Close()
	for _, asked := range []time.Duration{0, -time.Hour, time.Nanosecond} {
		start := time.Now() // not the arrival of the first report, which may be late when the others are not
		st := must(orcaservice.NewOpenRcaServiceClient(conn).StreamCoreMetrics(t.Context(), &orcaservice.OrcaLoadReportRequest{ReportInterval: durationpb.New(asked)}))
		for range 4 {
			must(st.Recv())
		}
		if d := time.Since(start); d < 90*time.Millisecond {
			t.Errorf("asked for %v: the first report and 3 more within %v", asked, d)
		}
	}
	st := must(orcaservice.NewOpenRcaServiceClient(conn).StreamCoreMetrics(t.Context(), &orcaservice.OrcaLoadReportRequest{ReportInterval: durationpb.New(1 << 62)}))
	must(st.Recv())
	orca.Close()
	orca.Close()
	if _, err := st.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("after Close: %v", err)
	}
}

func TestBadOrcaConfig(t *testing.T) {
	gates := must(ingress.New(ingress.Config{}))
	defer gates.Close()
	for want, c := range map[string]spillxds.OrcaConfig{
		"Server is nil":             {},
		"Interval is 1ms":           {Server: gates, Interval: time.Millisecond},
		"Smoothing is 2m0s":         {Server: gates, Smoothing: 2 * time.Minute},
		"MinOutOfBand is -1s, must": {Server: gates, MinOutOfBand: -time.Second},
	} {
		if orca, err := spillxds.NewOrca(c); orca != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewOrca: %v, want an error with %q", errors.Unwrap(err), want)
		}
	}
}
