// Package telemetry holds what all observers of Spillway share, so that a library and
// the proxy report the same thing under the same name: the kinds of decisions, counters
// for them, and the table of metrics.
package telemetry
