package attempts

import (
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// Config configures a [Histogram] or [Customers]. The zero Config is ready for
// use.
type Config struct {
	// Share is the share of retries among requests above which rejections say "don't
	// retry". A lower one ends a retry storm sooner, and takes away the retries by
	// which requests escape from a few overloaded tasks; below 0.1 that is felt.
	// Zero means 0.2, negative means that nothing is ever said; otherwise it must
	// be below 1.
	Share float64

	// Window is how long a request is remembered at most. A shorter one notices
	// both the beginning and the end of an overload sooner. Zero means 10 s; it
	// must be 100 ms to 1 h.
	Window time.Duration

	// FirstAttempts is how many first attempts are remembered at most, with all
	// retries that came between them. Zero means 1000; it must be 20 to 1e6.
	FirstAttempts int

	// MinRequests is how many requests must be remembered before they mean
	// anything. Zero means 50, negative means 1; it must be at most FirstAttempts.
	MinRequests int
}

// withDefaults returns c with its zero fields filled, or an error that names
// the first bad field.
func (c Config) withDefaults() (Config, error) {
	if c.Share == 0 {
		c.Share = 0.2
	}
	if c.Window == 0 {
		c.Window = 10 * time.Second
	}
	if c.FirstAttempts == 0 {
		c.FirstAttempts = 1000
	}
	if c.MinRequests == 0 {
		c.MinRequests = min(50, c.FirstAttempts)
	}
	switch {
	case !(c.Share < 1):
		return c, invalid.Field("attempts", "Share", c.Share, "below 1, or negative for off")
	case c.Window < 100*time.Millisecond || c.Window > time.Hour:
		return c, invalid.Field("attempts", "Window", c.Window, "100ms to 1h")
	case c.FirstAttempts < parts || c.FirstAttempts > 1e6:
		return c, invalid.Field("attempts", "FirstAttempts", c.FirstAttempts, "%d to 1000000", parts)
	case c.MinRequests > c.FirstAttempts:
		return c, invalid.Field("attempts", "MinRequests", c.MinRequests, "at most FirstAttempts (%d)", c.FirstAttempts)
	}
	return c, nil
}

// dontRetry reports whether the counts call for it.
func (c *Config) dontRetry(n *Counts) bool {
	return c.Share > 0 && int64(n.Total()) >= int64(c.MinRequests) && n.RetryShare() > c.Share
}

// A Histogram counts the attempt numbers of recent requests whose callers are
// believed. Its methods allocate nothing. It is safe for concurrent use and must
// not be copied; make one with [New].
type Histogram struct {
	mu     sync.Mutex
	cfg    Config
	window window
}

// New returns a Histogram that has seen nothing, or an error that names the field
// of c that is out of range.
func New(c Config) (*Histogram, error) {
	h := new(Histogram)
	if err := h.Update(c); err != nil {
		return nil, err
	}
	return h, nil
}

// Update changes the configuration of a Histogram in use, or returns an error
// that names the field that is out of range and changes nothing. What is
// remembered is kept as far as the new bounds allow.
func (h *Histogram) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cfg = c
	return nil
}

// Observe counts a request that arrived at the time now, whether it is served or
// rejected. The first attempt is 0. A negative number counts as 0, and all from
// Buckets−1 up count alike. Call it once for each request.
func (h *Histogram) Observe(now time.Time, attempt int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window.observe(now, attempt, &h.cfg)
}

// DontRetry reports whether a request that is rejected at the time now had better
// not be retried, because the others seem to be overloaded as well.
func (h *Histogram) DontRetry(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window.see(now, &h.cfg)
	return h.cfg.dontRetry(&h.window.sum)
}

// Stats says what a [Histogram] remembers.
type Stats struct {
	Counts     Counts  // requests by attempt number
	RetryShare float64 // of all of them, those that were not first attempts
	DontRetry  bool    // whether rejections say so
}

// Stats returns what is known at the time now.
func (h *Histogram) Stats(now time.Time) Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window.see(now, &h.cfg)
	n := h.window.sum
	return Stats{Counts: n, RetryShare: n.RetryShare(), DontRetry: h.cfg.dontRetry(&n)}
}
