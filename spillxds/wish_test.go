package spillxds

import (
	"testing"
	"time"

	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// FuzzLoadStatsResponse: whatever a server asks for, reports neither spin nor cease.
func FuzzLoadStatsResponse(f *testing.F) {
	for _, d := range []*durationpb.Duration{nil, {}, {Seconds: -1}, {Nanos: 1}, {Seconds: 1 << 62, Nanos: -1 << 31}, {Seconds: 10}} {
		text, _ := proto.Marshal(&lrsv3.LoadStatsResponse{SendAllClusters: true, Clusters: []string{"a"}, LoadReportingInterval: d})
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var m lrsv3.LoadStatsResponse
		if proto.Unmarshal(message, &m) != nil {
			return
		}
		w := wishOf(&m, time.Second)
		if w.interval < time.Second || w.interval > time.Hour {
			t.Fatalf("an interval of %v", w.interval)
		}
		for _, name := range m.GetClusters() {
			if !w.has(name) {
				t.Fatalf("%q is not reported", name)
			}
		}
	})
}
