// Package xds connects the proxy to a control plane that speaks xDS, by package spillxds:
// circuit breaking (max_requests, max_retries, retry_budget) of clusters comes from it, live,
// and rejections are reported to its load reporting service.
package xds
