package message

import (
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"

	orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The headers, in canonical form.
const (
	Header       = "Endpoint-Load-Metrics"
	HeaderBinary = "Endpoint-Load-Metrics-Bin"
)

// A LoadReport is what an endpoint says of its load. Fields that it does not give are zero.
//
// The form is Open Request Cost Aggregation, as in gRFC A51 and Envoy. A report comes in a header or
// trailer of an answer,
//
//	endpoint-load-metrics: TEXT cpu_utilization=0.7, rps_fractional=100
//	endpoint-load-metrics: JSON {"cpu_utilization": 0.7, "rps_fractional": 100}
//	endpoint-load-metrics: BIN <base64 of xds.data.orca.v3.OrcaLoadReport>
//	endpoint-load-metrics-bin: <the same base64>
//
// or out of band, as messages of xds.service.orca.v3.OpenRcaService. Endpoints are not trusted to be
// right: what is too long or malformed is no report, and values that are negative or no numbers are
// ignored. Only the fields by which endpoints are weighed are read.
type LoadReport struct {
	CPU         float64 // cpu_utilization
	Application float64 // application_utilization
	RPS         float64 // rps_fractional, else rps
	EPS         float64 // eps
}

// maxText is the longest report that is read. Reports of Envoy and gRPC have well below
// 1 KiB unless they carry many named metrics.
const maxText = 8 << 10

// TakeLoadReport returns the report in headers or trailers, if there is one, and removes it: a
// report is about the hop that it came by.
func TakeLoadReport(h http.Header, wanted bool) (r LoadReport, ok bool) {
	text, binary := h[Header], h[HeaderBinary]
	delete(h, Header)
	delete(h, HeaderBinary)
	switch {
	case !wanted:
	case len(binary) > 0:
		return ofBase64(binary[0])
	case len(text) > 0:
		return ParseLoadReport(text[0])
	}
	return r, false
}

// ParseLoadReport reads the value of the header endpoint-load-metrics.
func ParseLoadReport(text string) (LoadReport, bool) {
	if len(text) > maxText {
		return LoadReport{}, false
	}
	form, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToUpper(form) {
	case "TEXT":
		return ofText(rest)
	case "JSON":
		return read([]byte(rest), protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal)
	case "BIN":
		return ofBase64(rest)
	}
	return LoadReport{}, false
}

// LoadReportOf returns what a message says. Values that are negative or no numbers are zero.
func LoadReportOf(m *orcapb.OrcaLoadReport) LoadReport {
	r := LoadReport{CPU: load(m.GetCpuUtilization()), Application: load(m.GetApplicationUtilization()), RPS: load(m.GetRpsFractional()), EPS: load(m.GetEps())}
	if r.RPS == 0 {
		//lint:ignore SA1019 older endpoints send it
		r.RPS = float64(m.GetRps()) //nolint:staticcheck // older endpoints send it
	}
	return r
}

func load(value float64) float64 {
	if !(value >= 0) || math.IsInf(value, 0) {
		return 0
	}
	return value
}

// ofText reads pairs of names and numbers. Names that do not matter are ignored.
func ofText(text string) (LoadReport, bool) {
	var m orcapb.OrcaLoadReport
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			name, value, found = strings.Cut(pair, ":")
		}
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !found || err != nil {
			return LoadReport{}, false
		}
		switch strings.TrimSpace(name) {
		case "cpu_utilization":
			m.CpuUtilization = number
		case "application_utilization":
			m.ApplicationUtilization = number
		case "rps":
			//lint:ignore SA1019 older endpoints send it
			m.Rps = uint64(min(load(number), math.MaxInt64)) //nolint:staticcheck // older endpoints send it
		case "rps_fractional":
			m.RpsFractional = number
		case "eps":
			m.Eps = number
		}
	}
	return LoadReportOf(&m), true
}

// ofBase64 reads base64 with or without padding, as gRPC sends both.
func ofBase64(text string) (LoadReport, bool) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	if len(text) > maxText {
		return LoadReport{}, false
	}
	message, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return LoadReport{}, false
	}
	return read(message, proto.Unmarshal)
}

func read(message []byte, unmarshal func([]byte, proto.Message) error) (LoadReport, bool) {
	var m orcapb.OrcaLoadReport
	if unmarshal(message, &m) != nil {
		return LoadReport{}, false
	}
	return LoadReportOf(&m), true
}
