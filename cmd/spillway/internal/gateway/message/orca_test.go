package message

import (
	"encoding/base64"
	"math"
	"net/http"
	"strings"
	"testing"

	orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/protobuf/proto"
)

func TestForms(t *testing.T) {
	message := &orcapb.OrcaLoadReport{
		CpuUtilization: 0.5, MemUtilization: 0.25, RpsFractional: 120.5, Eps: 2, ApplicationUtilization: 0.75,
		NamedMetrics: map[string]float64{"queue": 3}, Utilization: map[string]float64{"disk": 0.1}, RequestCost: map[string]float64{"rows": 9},
	}
	binary, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	want := LoadReport{CPU: 0.5, Application: 0.75, RPS: 120.5, EPS: 2}
	for _, row := range []struct {
		name, value string
		want        LoadReport
		ok          bool
	}{
		{Header, "TEXT cpu_utilization=0.5,application_utilization=0.75,rps_fractional=120.5,eps=2,named_metrics.queue=3", want, true},
		{Header, "text  cpu_utilization=0.5, rps=7 ", LoadReport{CPU: 0.5, RPS: 7}, true},
		{Header, "TEXT cpu_utilization:0.5", LoadReport{CPU: 0.5}, true},
		{Header, `JSON {"cpu_utilization": 0.5, "applicationUtilization": 0.75, "rps_fractional": 120.5, "eps": "2", "named_metrics": {"queue": 3}}`, want, true},
		{Header, "BIN " + base64.StdEncoding.EncodeToString(binary), want, true},
		{HeaderBinary, base64.StdEncoding.EncodeToString(binary), want, true},
		{HeaderBinary, base64.RawStdEncoding.EncodeToString(binary), want, true},
		// What makes no sense.
		{Header, "cpu_utilization=0.5", LoadReport{}, false},
		{Header, "TEXT cpu_utilization", LoadReport{}, false},
		{Header, "TEXT cpu_utilization=much", LoadReport{}, false},
		{Header, "JSON [1]", LoadReport{}, false},
		{Header, "BIN !", LoadReport{}, false},
		{Header, "", LoadReport{}, false},
		{HeaderBinary, base64.StdEncoding.EncodeToString(binary[:len(binary)-3]), LoadReport{}, false},
		{HeaderBinary, strings.Repeat("A", maxText+4), LoadReport{}, false},
		{Header, "TEXT " + strings.Repeat("a=1,", maxText), LoadReport{}, false},
		// Values that are no loads.
		{Header, "TEXT cpu_utilization=NaN,rps_fractional=-3,eps=Inf", LoadReport{}, true},
		{Header, "TEXT rps_fractional=1e308", LoadReport{RPS: 1e308}, true},
	} {
		h := http.Header{row.name: {row.value}, "X-Other": {"stays"}}
		got, ok := TakeLoadReport(h, true)
		if got != row.want || ok != row.ok {
			t.Errorf("%s: %.60s: %+v, %v; want %+v, %v", row.name, row.value, got, ok, row.want, row.ok)
		}
		if len(h) != 1 {
			t.Errorf("%s: %.60s: left %v", row.name, row.value, h)
		}
	}
}

// TestNotWanted: a report is removed, wanted or not.
func TestNotWanted(t *testing.T) {
	h := http.Header{Header: {"TEXT cpu_utilization=1"}, HeaderBinary: {"AA"}}
	if _, ok := TakeLoadReport(h, false); ok || len(h) != 0 {
		t.Errorf("%v, %v", ok, h)
	}
	if n := testing.AllocsPerRun(100, func() { TakeLoadReport(h, true) }); n != 0 {
		t.Errorf("an answer without a report allocates %v times", n)
	}
}

func FuzzReports(f *testing.F) {
	binary, err := proto.Marshal(&orcapb.OrcaLoadReport{CpuUtilization: math.NaN(), RpsFractional: math.Inf(1), Eps: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("BIN "+base64.StdEncoding.EncodeToString(binary), binary)
	f.Add(`JSON {"eps": "1e999"}`, []byte{0xff, 0xff})
	f.Add("TEXT a=1,b:2", []byte{})
	f.Fuzz(func(t *testing.T, text string, message []byte) {
		a, _ := ParseLoadReport(text)
		b, _ := read(message, proto.Unmarshal)
		for _, v := range []float64{a.CPU, a.Application, a.RPS, a.EPS, b.CPU, b.Application, b.RPS, b.EPS} {
			if !(v >= 0) || math.IsInf(v, 0) {
				t.Errorf("%q, %x: %+v %+v", text, message, a, b)
			}
		}
	})
}
