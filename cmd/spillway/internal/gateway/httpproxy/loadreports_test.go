package httpproxy

import (
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	orcaservice "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A gauge measures a node, as a server measures itself: requests per second, and the share of
// its slots in use, over 200 ms.
type gauge struct {
	node *node
	mean time.Duration

	mu     sync.Mutex
	at     time.Time
	served int64
	text   string
}

func (g *gauge) report() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	elapsed := time.Since(g.at)
	if elapsed < 200*time.Millisecond {
		return g.text
	}
	served := g.node.served.Load()
	qps := float64(served-g.served) / elapsed.Seconds()
	if !g.at.IsZero() && qps > 0 {
		g.text = fmt.Sprintf("TEXT cpu_utilization=%.4f,rps_fractional=%.2f", qps*g.mean.Seconds()/float64(cap(g.node.slots)), qps)
	}
	g.at, g.served = time.Now(), served
	return g.text
}

// TestLoadReports has two endpoints, one of them four times as fast.
func TestLoadReports(t *testing.T) {
	t.Parallel() // a small load for seconds
	var nodes []*node
	for _, mean := range []time.Duration{10 * time.Millisecond, 40 * time.Millisecond} {
		n := newNode(4, mean)
		n.queue = 1000
		g := &gauge{node: n, mean: mean, text: "TEXT"}
		n.report = g.report
		nodes = append(nodes, n)
	}
	url, p := before(t, nodes, func(c *config.Config) {
		noShed(c)
		c.Clusters[0].Balance.LoadReports = &config.LoadReports{BlackoutPeriod: -1, WeightUpdatePeriod: 100 * time.Millisecond}
	})
	offer(t, url, 350, 3*time.Second)
	first := [2]int64{nodes[0].asked.Load(), nodes[1].asked.Load()}
	got := offer(t, url, 350, longer(3*time.Second, 20*time.Second))
	ratio := float64(nodes[0].asked.Load()-first[0]) / float64(nodes[1].asked.Load()-first[1])
	endpoints := p.Stats(time.Now()).Clusters["upstream"].Endpoints
	t.Logf("%.2f to 1: %v; weights %v", ratio, got, endpoints)
	// A busy machine changes how many requests are at an endpoint, but not what an endpoint reports for each request.
	if weights := endpoints[0].Weight / endpoints[1].Weight; weights < 3.9 || weights > 4.1 {
		t.Errorf("the weights are %.2f to 1, want 4 to 1", weights)
	}
	needTime(t, got, 20*time.Millisecond) // it is mostly the fast one's
	off := 2.0                            // of a short run, beside others
	if *measure {
		off = 1.1
	}
	if ratio < 4/off || ratio > 4*off || got.success() < 0.995 {
		t.Errorf("%.2f to 1: %v", ratio, got)
	}
}

// TestLoadReportsAreHopByHop: no client sees a report, from headers or trailers, of
// HTTP/1.1, HTTP/2 or gRPC, whether it is used or not; the weights do.
func TestLoadReportsAreHopByHop(t *testing.T) {
	t.Parallel() // it waits
	message, err := proto.Marshal(&orcapb.OrcaLoadReport{ApplicationUtilization: 0.5, RpsFractional: 300})
	if err != nil {
		t.Fatal(err)
	}
	binary := base64.RawStdEncoding.EncodeToString(message)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/header":
			w.Header().Set("endpoint-load-metrics", "TEXT application_utilization=0.5,rps_fractional=300")
		case "/announced":
			w.Header().Set("Trailer", "Endpoint-Load-Metrics-Bin, X-Other")
			defer func() {
				w.Header().Set("Endpoint-Load-Metrics-Bin", binary)
				w.Header().Set("X-Other", "stays")
			}()
		case "/trailer":
			defer w.Header().Set(http.TrailerPrefix+"Endpoint-Load-Metrics-Bin", binary)
		}
		if r.Header.Get("Content-Type") != "" {
			w.Header().Set("Content-Type", "application/grpc")
			defer w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		}
		_, _ = io.WriteString(w, "done")
		_ = http.NewResponseController(w).Flush()
	})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("endpoint-load-metrics-bin", binary[:0]+base64.StdEncoding.EncodeToString(mustMarshal(t, 100)))
	})
	for _, used := range []bool{true, false} {
		for _, path := range []string{"/header", "/announced", "/trailer"} {
			for _, second := range []bool{false, true} {
				a, _ := upstreamAt(t, h)
				b, _ := upstreamAt(t, slow)
				url, p := front(t, h, func(c *config.Config) {
					c.Clusters[0].Endpoints = []string{a, b}
					if used {
						c.Clusters[0].Balance.LoadReports = &config.LoadReports{BlackoutPeriod: -1, WeightUpdatePeriod: 100 * time.Millisecond}
					}
				})
				x := client(t, second)
				weight := 1.0
				for i := 0; i < 100 && (used && weight == 1 || i < 10); i++ {
					headers := []string{}
					if second {
						headers = []string{"Content-Type", "application/grpc"}
					}
					resp, _ := do(t, x, http.MethodPost, url+path, "x", headers...)
					for _, all := range []http.Header{resp.Header, resp.Trailer} {
						for name := range all {
							if strings.HasPrefix(name, "Endpoint-Load") {
								t.Fatalf("%s, second %v: the client got %s", path, second, name)
							}
						}
					}
					if path == "/announced" && resp.Header.Get("Content-Length") == "" && resp.Trailer.Get("X-Other") != "stays" {
						t.Errorf("second %v: a trailer is lost: %v", second, resp.Trailer)
					}
					<-time.After(time.Millisecond * 10)
					weight = p.Stats(time.Now()).Clusters["upstream"].Endpoints[0].Weight
				}
				if want := map[bool]float64{true: 1.5, false: 1}[used]; math.Abs(weight-want) > 1e-9 {
					t.Errorf("used %v, %s, second %v: the weight is %v, want %v", used, path, second, weight, want)
				}
			}
		}
	}
}

func mustMarshal(t *testing.T, qps float64) []byte {
	t.Helper()
	message, err := proto.Marshal(&orcapb.OrcaLoadReport{ApplicationUtilization: 0.5, RpsFractional: qps})
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// rca is the out-of-band reporting service of an endpoint that sends as fast as it can.
type rca struct {
	orcaservice.UnimplementedOpenRcaServiceServer

	qps  float64
	sent atomic.Int64
	want atomic.Int64 // the interval that was asked for
}

func (s *rca) StreamCoreMetrics(r *orcaservice.OrcaLoadReportRequest, stream orcaservice.OpenRcaService_StreamCoreMetricsServer) error {
	s.want.Store(int64(r.GetReportInterval().AsDuration()))
	for stream.Context().Err() == nil {
		if err := stream.Send(&orcapb.OrcaLoadReport{CpuUtilization: 0.5, RpsFractional: s.qps}); err != nil {
			return err
		}
		s.sent.Add(1)
	}
	return nil
}

// TestOutOfBand: endpoints send reports on a gRPC stream, even without requests. An endpoint
// that floods is read slowly; an endpoint without the service is not asked again.
func TestOutOfBand(t *testing.T) {
	quiet(t)
	services := []*rca{{qps: 100}, {qps: 300}}
	var addresses []string
	for _, s := range services {
		g := grpc.NewServer()
		orcaservice.RegisterOpenRcaServiceServer(g, s)
		address, _ := upstreamAt(t, g)
		addresses = append(addresses, address)
	}
	without := grpc.NewServer()
	address, connections := upstreamAt(t, without)
	addresses = append(addresses, address)
	url, p := front(t, http.NotFoundHandler(), func(c *config.Config) {
		c.Clusters[0].Endpoints = addresses
		c.Clusters[0].Balance.LoadReports = &config.LoadReports{BlackoutPeriod: -1, WeightUpdatePeriod: 100 * time.Millisecond, OutOfBandPeriod: 250 * time.Millisecond}
	})
	x := client(t, false)
	until(t, "weights are those of the reports", func() bool {
		do(t, x, http.MethodGet, url, "") // weights are computed for picks
		e := p.Stats(time.Now()).Clusters["upstream"].Endpoints
		return e[0].Weight == 0.5 && e[1].Weight == 1.5 && e[2].Weight == 1
	})
	if d := time.Duration(services[0].want.Load()); d != 250*time.Millisecond {
		t.Errorf("asked for %v", d)
	}
	until(t, "flow control holds back the one that floods", func() bool {
		before := services[0].sent.Load()
		<-time.After(100 * time.Millisecond)
		return services[0].sent.Load()-before < 1000
	})
	if n := connections.all.Load(); n > 2 { // one for requests and one for the stream
		t.Errorf("%d connections to the endpoint without reports", n)
	}
}
