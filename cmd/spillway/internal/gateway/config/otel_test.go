package config

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/good/otel.yaml
var exporting string

func TestOtel(t *testing.T) {
	c := parse(t, exporting)
	d := c.Defaulted()
	if c.Otel.Interval != 0 || d.Otel.Interval == 0 || d.Otel.Resource["deployment.environment.name"] != "prod" {
		t.Errorf("%+v, %+v", c.Otel, d.Otel)
	}
	if files := c.Files(); len(files) != 2 || files[0] != "key" || files[1] != "ca.pem" {
		t.Errorf("files %v", files)
	}
	if parse(t, small).Defaulted().Otel != nil {
		t.Error("on by default")
	}
}

func TestWrongOtel(t *testing.T) {
	for text, want := range map[string]string{
		"interval: 1m":                                         "proxy.yaml:6: otel.endpoint is missing, must be a URL",
		"endpoint: '127.0.0.1:4318'":                           "otel.endpoint must be a URL such as",
		"endpoint: 'grpc://127.0.0.1:4317'":                    "otel.endpoint must be a URL such as",
		"endpoint: 'http://:4318'":                             "otel.endpoint must be a URL such as",
		"endpoint: 'http://127.0.0.1:99999'":                   "otel.endpoint must be a URL such as",
		"endpoint: 'http://me:secret@otel.example.com'":        "otel.endpoint must have no user, query or fragment",
		"endpoint: 'http://otel.example.com?key=secret'":       "otel.endpoint must have no user, query or fragment",
		"endpoint: 'http://127.0.0.1:4318', interval: 1ms":     "otel.interval is 1ms, must be 1s to 1h",
		"endpoint: 'http://127.0.0.1:4318', interval: 2h":      "otel.interval is 2h0m0s, must be 1s to 1h",
		"endpoint: 'http://127.0.0.1:4318', resource: {'': x}": "otel.resource has an attribute without a name",
		"endpoint: 'http://127.0.0.1:4318', tls: {ca: ca.pem}": "otel.tls is given, but endpoint is not one of https",
		"endpoint: 'https://otel.example.com', tls: {key: a}":  "otel.tls.certificate is missing",
		"endpoint: 'http://127.0.0.1:4318', header: {a: b}":    "otel.header is no field here",
	} {
		_, err := Parse("proxy.yaml", []byte(small+"otel: {"+text+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
