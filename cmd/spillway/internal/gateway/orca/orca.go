// Package orca reads load reports of endpoints: Open Request Cost Aggregation, as in
// gRFC A51 and Envoy. A report comes in a header or trailer of an answer,
//
//	endpoint-load-metrics: TEXT cpu_utilization=0.7, rps_fractional=100
//	endpoint-load-metrics: JSON {"cpu_utilization": 0.7, "rps_fractional": 100}
//	endpoint-load-metrics: BIN <base64 of xds.data.orca.v3.OrcaLoadReport>
//	endpoint-load-metrics-bin: <the same base64>
//
// or out of band, as messages of xds.service.orca.v3.OpenRcaService. Endpoints are not
// trusted to be right: what is too long or malformed is no report, and values that are
// negative or no numbers are ignored. Only the fields by which endpoints are weighed
// are read.
package orca

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// The headers, in canonical form.
const (
	Header       = "Endpoint-Load-Metrics"
	HeaderBinary = "Endpoint-Load-Metrics-Bin"
)

// A Report is what an endpoint says of its load. Fields that it does not give are zero.
type Report struct {
	CPU         float64 // cpu_utilization
	Application float64 // application_utilization
	RPS         float64 // rps_fractional, else rps
	EPS         float64 // eps
}

// maxText is the longest report that is read. Reports of Envoy and gRPC have well below
// 1 KiB unless they carry many named metrics.
const maxText = 8 << 10

// Take returns the report in headers or trailers, if there is one, and removes it: a
// report is about the hop that it came by.
func Take(h http.Header, wanted bool) (r Report, ok bool) {
	text, binary := h[Header], h[HeaderBinary]
	if text == nil && binary == nil {
		return r, false
	}
	delete(h, Header)
	delete(h, HeaderBinary)
	switch {
	case !wanted:
	case len(binary) > 0:
		return ofBase64(binary[0])
	case len(text) > 0:
		return Parse(text[0])
	}
	return r, false
}

// Parse reads the value of the header endpoint-load-metrics.
func Parse(text string) (Report, bool) {
	if len(text) > maxText {
		return Report{}, false
	}
	form, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch strings.ToUpper(form) {
	case "TEXT":
		return ofText(rest)
	case "JSON":
		return ofJSON(rest)
	case "BIN":
		return ofBase64(rest)
	}
	return Report{}, false
}

// set sets a field by its name. Names that do not matter are ignored.
func (r *Report) set(name string, value float64) {
	if !(value >= 0) || math.IsInf(value, 0) {
		return
	}
	switch name {
	case "cpu_utilization", "cpuUtilization":
		r.CPU = value
	case "application_utilization", "applicationUtilization":
		r.Application = value
	case "rps_fractional", "rpsFractional":
		r.RPS = value
	case "rps":
		if r.RPS == 0 {
			r.RPS = value
		}
	case "eps":
		r.EPS = value
	}
}

// ofText reads pairs of names and numbers.
func ofText(text string) (r Report, ok bool) {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			name, value, found = strings.Cut(pair, ":")
		}
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !found || err != nil {
			return Report{}, false
		}
		r.set(strings.TrimSpace(name), number)
	}
	return r, true
}

// ofJSON reads an object, with names as protobuf or JSON has them. Numbers may be
// strings, as 64-bit integers are in the JSON of protobuf.
func ofJSON(text string) (r Report, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil {
		return r, false
	}
	for name, raw := range fields {
		if value, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64); err == nil {
			r.set(name, value)
		}
	}
	return r, true
}

// ofBase64 reads base64 with or without padding, as gRPC sends both.
func ofBase64(text string) (Report, bool) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	if len(text) > maxText {
		return Report{}, false
	}
	message, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return Report{}, false
	}
	return Decode(message)
}

// The fields of xds.data.orca.v3.OrcaLoadReport that matter, by tag: number and wire
// type. A known number with another type is an unknown field.
var fieldNames = map[uint64]string{
	1<<3 | wireFixed8: "cpu_utilization",
	3<<3 | wireVarint: "rps",
	6<<3 | wireFixed8: "rps_fractional",
	7<<3 | wireFixed8: "eps",
	9<<3 | wireFixed8: "application_utilization",
}

// The wire types of protobuf.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// Decode reads an xds.data.orca.v3.OrcaLoadReport.
func Decode(message []byte) (r Report, ok bool) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return Report{}, false
		}
		message = message[n:]
		value, size := field(tag&7, message)
		if size < 0 {
			return Report{}, false
		}
		message = message[size:]
		if name := fieldNames[tag]; name != "" {
			r.set(name, value)
		}
	}
	return r, true
}

// field returns the value of a field, if it is a number, and its size; -1 if it is
// malformed.
func field(wire uint64, b []byte) (value float64, size int) {
	switch {
	case wire == wireVarint:
		x, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, -1
		}
		return float64(x), n
	case wire == wireFixed8 && len(b) >= 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), 8
	case wire == wireFixed4 && len(b) >= 4:
		return -1, 4 // no field that matters
	case wire == wireBytes:
		x, n := binary.Uvarint(b)
		if n <= 0 || x > uint64(len(b)-n) {
			return 0, -1
		}
		return -1, n + int(x)
	}
	return 0, -1
}
