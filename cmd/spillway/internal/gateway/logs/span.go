package logs

import "go.opentelemetry.io/otel/attribute"

// SpanName returns the name of the span of a request: the method and the route, as the conventions
// of OpenTelemetry have it.
func (r *Record) SpanName() string {
	if r.Route == "" {
		return r.Method
	}
	return r.Method + " " + r.Route
}

// Attributes returns the attributes of the span of a request.
func (r *Record) Attributes() []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.Path), attribute.Int("http.response.status_code", r.Status),
		attribute.String("spillway.account", r.Account), attribute.String("spillway.listener", r.Listener), attribute.String("spillway.class", r.Class),
		attribute.Bool("spillway.retried", r.Retried), attribute.Int("spillway.attempts", r.Attempts),
	}
	for name, value := range map[string]string{
		"http.route": r.Route, "client.address": r.Caller, "spillway.cluster": r.Cluster, "spillway.reason": r.Reason,
		"spillway.customer": r.Customer, "spillway.request_id": r.RequestID, "spillway.policy": r.Policy, "spillway.endpoint": r.Endpoint,
		"spillway.answered_by": r.AnsweredBy, "spillway.error": r.Error,
	} {
		if value != "" {
			all = append(all, attribute.String(name, value))
		}
	}
	for name, ms := range map[string]*float64{"spillway.wait_ms": r.Wait, "spillway.upstream_ms": r.Upstream} {
		if ms != nil {
			all = append(all, attribute.Float64(name, *ms))
		}
	}
	return all
}
