package config

import (
	"net/url"
	"strconv"
	"time"
)

// Otel is where metrics and spans are sent to.
type Otel struct {
	Endpoint    string            `yaml:"endpoint" jsonschema:"required" jsonschema_description:"URL of a receiver of OTLP over HTTP, such as http://127.0.0.1:4318; /v1/metrics and /v1/traces are added to it."`
	Interval    time.Duration     `yaml:"interval" zero:"15s" allowed:"1s to 1h" jsonschema_description:"Between exports; 0 is 15s."`
	HeadersFile string            `yaml:"headers_file" file:"true" jsonschema_description:"File with headers for the receiver, such as an API key: NAME: VALUE on each line. It is read for each export."`
	TLS         *ClientTLS        `yaml:"tls" jsonschema_description:"TLS to an https endpoint. The files are read at the start of the program."`
	Traces      *Traces           `yaml:"traces" jsonschema_description:"Which requests have a span; without it none. A traceparent is passed on in any case."`
	Resource    map[string]string `yaml:"resource" jsonschema_description:"Attributes that tell this proxy from others, such as deployment.environment.name; service.name is spillway unless it is given."`
}

// isPort reports whether a URL may have this port; none is that of its scheme.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

func (k *checker) otel(o *Otel) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case o.Endpoint == "":
		k.failf("otel.endpoint", "is missing, must be a URL such as http://127.0.0.1:4318")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isPort(u.Port()):
		k.failf("otel.endpoint", "must be a URL such as http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		k.failf("otel.endpoint", "must have no user, query or fragment; headers_file is for keys")
	}
	if o.TLS != nil && u != nil && u.Scheme != "https" {
		k.failf("otel.tls", "is given, but endpoint is not one of https")
	}
	for name := range o.Resource {
		if name == "" {
			k.failf("otel.resource", "has an attribute without a name")
		}
	}
}
