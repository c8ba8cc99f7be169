// Package metrics has the test that compares the table of docs/metrics.md with what the
// registry of Prometheus gathers and what the SDK of OpenTelemetry exports, from one program
// that reports to both.
package metrics
