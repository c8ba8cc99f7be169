module github.com/seed90641741/spillway/benchmarks

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/avast/retry-go/v5 v5.0.1
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/go-kratos/aegis v0.2.0
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/seed90641741/spillway v0.1.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.48.0
	golang.org/x/time v0.16.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/influxdata/tdigest v0.0.1 // indirect
)

replace github.com/seed90641741/spillway => ..
