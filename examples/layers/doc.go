// Package layers has tests of whole systems: layers of services over HTTP and gRPC that call
// one another, and services of several tasks, one of them overloaded.
package layers
