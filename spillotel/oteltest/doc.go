// Package oteltest tests package spillotel with the SDK of OpenTelemetry. It has no code but tests,
// and is a module so that spillotel does not need the SDK.
package oteltest
