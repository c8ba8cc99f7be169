package exporters

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

const sampledParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// receiver takes spans.
func receiver(t *testing.T) (url string, spans func() []*wire.Span) {
	t.Helper()
	var mu sync.Mutex
	var all []*wire.Span
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var x collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(text, &x)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range x.GetResourceSpans() {
			for _, in := range of.GetScopeSpans() {
				all = append(all, in.GetSpans()...)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []*wire.Span {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func tracer(t *testing.T, url string, traces config.Traces) *Tracer {
	t.Helper()
	x, err := StartTraces(&config.Otel{Endpoint: url, Traces: &traces}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestSpans(t *testing.T) {
	url, spans := receiver(t)
	x := tracer(t, url, config.Traces{Ratio: 1, Rate: 100})
	now := time.Now()
	s := x.Start(now, http.Header{"Traceparent": {sampledParent}}, true)
	out := http.Header{"Traceparent": {sampledParent}}
	s.Inject(out)
	s.End(now.Add(time.Second), "GET /api/", true, attribute.String("spillway.account", "failed"))
	x.Close()
	all := spans()
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	got := all[0]
	if got.GetName() != "GET /api/" || got.GetEndTimeUnixNano()-got.GetStartTimeUnixNano() != 1e9 || got.GetStatus().GetCode() != wire.Status_STATUS_CODE_ERROR || len(got.GetAttributes()) != 1 {
		t.Errorf("%v", got)
	}
	parts := strings.Split(out.Get("Traceparent"), "-")
	if parts[1] != "4bf92f3577b34da6a3ce929d0e0e4736" || parts[2] == "00f067aa0ba902b7" || parts[2] != hexOf(got.GetSpanId()) || hexOf(got.GetParentSpanId()) != "00f067aa0ba902b7" {
		t.Errorf("sent on: %v, of %v", parts, got)
	}
}

func hexOf(id []byte) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, x := range id {
		b.WriteByte(digits[x>>4])
		b.WriteByte(digits[x&15])
	}
	return b.String()
}

// TestWhichRequestsHaveASpan: clients cannot force sampling at an edge, and the rate is never
// exceeded.
func TestWhichRequestsHaveASpan(t *testing.T) {
	url, _ := receiver(t)
	unsampled := strings.TrimSuffix(sampledParent, "1") + "0"
	for _, row := range []struct {
		name     string
		traces   config.Traces
		parent   string
		believed bool
		want     int
	}{
		{"inside, sampled", config.Traces{Ratio: 1e-9, Rate: 1e5}, sampledParent, true, 1000},
		{"inside, not sampled", config.Traces{Ratio: 1, Rate: 1e5}, unsampled, true, 0},
		{"inside, not said", config.Traces{Ratio: 1, Rate: 1e5}, "", true, 1000},
		{"edge, sampled", config.Traces{Ratio: 1e-9, Rate: 1e5}, sampledParent, false, 0},
		{"edge, not sampled", config.Traces{Ratio: 1, Rate: 1e5}, unsampled, false, 1000},
		{"above the rate", config.Traces{Ratio: 1, Rate: 10}, sampledParent, true, 10},
	} {
		x := tracer(t, url, row.traces)
		h, now, n := make(http.Header), time.Now(), 0
		if row.parent != "" {
			h.Set("Traceparent", row.parent)
		}
		for range 1000 {
			if s := x.Start(now, h, row.believed); s != nil {
				n++
			}
		}
		if n != row.want {
			t.Errorf("%s: %d spans, want %d", row.name, n, row.want)
		}
		x.Close()
	}
	var none *Tracer
	none.Start(time.Now(), nil, true).End(time.Now(), "", false)
	none.Close()
	if x, err := StartTraces(&config.Otel{Endpoint: url}, "test", nil); x != nil || err != nil {
		t.Errorf("without traces: %v, %v", x, err)
	}
}

// TestADeadReceiverDelaysNobody: while the receiver hangs, spans are dropped, and their memory
// is bounded.
func TestADeadReceiverDelaysNobody(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	x := tracer(t, s.URL, config.Traces{Ratio: 1, Rate: 1e5})
	x.lastWords = time.Millisecond
	defer x.Close()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	name := strings.Repeat("n", 100)
	spans := func(n int) {
		for i := range n {
			now := time.Unix(int64(i), 0)
			x.Start(now, http.Header{}, false).End(now, name+string(rune('a'+i%26)), false, attribute.String("a", name))
		}
	}
	spans(2 * spanQueue) // the queue is full
	before := heap()
	spans(20 * spanQueue)
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("%d spans for a receiver that hangs took %d bytes", 20*spanQueue, grown)
	}
}
