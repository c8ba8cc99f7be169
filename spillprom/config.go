package spillprom

import "context"

// Config configures a [Collector]. The zero Config is ready for use.
type Config struct {
	// MaxRoutes is how many pairs of a route and a reason have a metric of their own: those with
	// most rejections. Zero means 20, negative means none; it must be at most 64.
	MaxRoutes int
	// MaxCustomers is the same for customers. Everyone who can read the metrics can read their
	// names: choose a negative number where these are secrets, such as API keys. Zero means
	// 10, negative means none; it must be at most 64.
	MaxCustomers int
	// MaxBackends is how many backends of clients have levels of their own: the most throttled
	// ones first, then those with most calls in flight. Zero means 10, negative means none.
	MaxBackends int
	// Exemplar returns the trace id of a request, or "". The latency histogram then has
	// exemplars. It is called about once per second for each bucket, on the path of the
	// call: it must be quick and safe for concurrent use. Nil means no exemplars.
	Exemplar func(context.Context) string
}
