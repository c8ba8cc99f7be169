// Package exporters gives what the proxy and the service of quotas measure to other systems: metrics to
// Prometheus ([Handler]), the same metrics with OTLP over HTTP to an OpenTelemetry collector or any other
// receiver of this protocol ([Start]), and traces ([StartTraces]).
//
// The metrics say what the last state says that package admin shows. OTLP exports the registry of /metrics
// through the Prometheus bridge of OpenTelemetry, under the same names, with the labels as attributes.
// Reading the registry does not slow requests down: it reads the State that is made once a second in any
// case. All values are cumulative, so a failed export is not retried: the next one includes its data.
// Failures are logged at most once a minute. The last export is made when the proxy ends.
//
// The resource has service.name (default spillway), service.version, a service.instance.id
// that is new at each start, host.name, the attributes in the environment variable
// OTEL_RESOURCE_ATTRIBUTES, and the configured attributes, which take precedence. Other
// environment variables for exporters are ignored: the configuration file says where metrics
// go.
package exporters
