// Package otel sends the metrics of the proxy to a receiver of OTLP over HTTP, which is
// a collector of OpenTelemetry or what understands the same protocol.
//
// What is sent is what /metrics has: the registry itself, through the Prometheus bridge
// of OpenTelemetry, under the same names with the labels as attributes. Reading it takes
// nothing from requests: it is the State that is made once a second in any case. All
// figures are cumulative, so that an export which fails is not tried again: the next one
// has all that it had. Failures are logged once a minute at most. The last export is made
// when the proxy ends.
//
// The resource has service.name, which is spillway unless the configuration says another
// one, service.version, a service.instance.id that is new at each start, host.name, what
// the environment has in OTEL_RESOURCE_ATTRIBUTES, and what the configuration gives,
// which counts for more. Other variables for exporters are not used: the file says where
// metrics go.
package otel
