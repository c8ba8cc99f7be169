// Package xds connects the proxy to a control plane that speaks xDS, by package
// spillxds: circuit breaking (max_requests, max_retries, retry_budget) of clusters
// comes from it, live, and what was refused goes to its load reporting service.
//
// As that takes gRPC, a third of the size of the program, all of it is behind the build
// tag xds. Without the tag a configuration that names a control plane is refused.
package xds
