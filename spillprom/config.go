package spillprom

import (
	"context"
	"fmt"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/spacesaving"
)

// Config configures a [Collector]. The zero Config is ready for use.
type Config struct {
	// Routes is how many pairs of a route and a reason have a metric of their own: those with
	// most rejections. Zero means 20, negative means none; it must be at most 64.
	Routes int
	// Customers is the same for customers. Everyone who can read the metrics can read their
	// names: choose a negative number where these are secrets, such as API keys. Zero means
	// 10, negative means none; it must be at most 64.
	Customers int
	// Backends is how many backends of clients have levels of their own: the most throttled
	// ones first, then those with most calls in flight. Zero means 10, negative means none.
	Backends int
	// Exemplar returns the trace id of a request, or "". The latency histogram then has
	// exemplars. It is called about once per second for each bucket, on the path of the
	// call: it must be quick and safe for concurrent use. Nil means no exemplars.
	Exemplar func(context.Context) string
}

const (
	defaultRoutes    = 20
	defaultCustomers = 10
	defaultBackends  = 10
)

func (c Config) withDefaults() Config {
	if c.Routes == 0 {
		c.Routes = defaultRoutes
	}
	if c.Customers == 0 {
		c.Customers = defaultCustomers
	}
	if c.Backends == 0 {
		c.Backends = defaultBackends
	}
	return c
}

// table returns a table of n entries, nil if n is negative.
func table(field string, n int) (*spacesaving.Table, error) {
	if n < 0 {
		return nil, nil //nolint:nilnil // there is no table
	}
	t, err := spacesaving.New(n)
	if err != nil {
		return nil, fmt.Errorf("spillprom: %w", &spillway.FieldError{
			Path: field, Value: n, Allowed: fmt.Sprintf("at most %d, or negative for none", spacesaving.MaxEntries),
		})
	}
	return t, nil
}
