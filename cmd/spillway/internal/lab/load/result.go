package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/seed90641741/spillway"
)

// An answer says how a request ended.
type answer uint8

const (
	served   answer = iota // 2xx in time
	rejected               // 429 or 503
	timedOut
	redirected // 3xx, which is not followed
	failed     // another status, no connection, or a body that is too long
)

// maxBody is how much of an answer is read. A longer one costs its connection.
const maxBody = 1 << 20

// call sends one request, and reads its answer. The error says why it has failed.
func (c *Service) call(ctx context.Context, t http.RoundTripper, url string, class spillway.Criticality) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return failed, err
	}
	r.Header.Set("X-Request-Criticality", class.String())
	r.Header.Set("User-Agent", "spillway-drill")
	got, err := t.RoundTrip(r)
	if err != nil {
		return byError(err)
	}
	defer func() { _ = got.Body.Close() }() // which was read, or is not wanted
	n, err := io.Copy(io.Discard, io.LimitReader(got.Body, maxBody+1))
	switch {
	case err != nil:
		return byError(err)
	case got.StatusCode == http.StatusTooManyRequests || got.StatusCode == http.StatusServiceUnavailable:
		return rejected, nil
	case got.StatusCode >= 300 && got.StatusCode <= 399:
		return redirected, nil
	case got.StatusCode < 200 || got.StatusCode > 299:
		return failed, fmt.Errorf("it answered %d", got.StatusCode)
	case n > maxBody:
		return failed, fmt.Errorf("its answer has more than %d bytes", maxBody)
	}
	return served, nil
}

func byError(err error) (answer, error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return timedOut, nil
	}
	return failed, err
}

// A Result counts the answers of a target. Requests that were in flight at the end are not
// counted.
type Result struct {
	Target      string  `json:"target"`
	Seconds     float64 `json:"seconds"`
	Interrupted bool    `json:"interrupted"` // before the duration was over
	Rate        float64 `json:"rate"`        // that the load was to have, per second
	Sent        int     `json:"sent"`        // requests, those in flight at the end included
	Workers     int     `json:"workers"`
	Classes     []Class `json:"classes"` // from the lowest on
	// Failure says why the first request that failed did. It is empty if none failed.
	Failure string `json:"failure,omitempty"`

	mu        sync.Mutex
	latencies [spillway.Criticalities][]time.Duration // of served requests
}

// A Class counts the answers to requests of one class.
type Class struct {
	Class      string   `json:"criticality"`
	Served     int      `json:"served"`
	Rejected   int      `json:"rejected"`
	TimedOut   int      `json:"timed_out"`
	Redirected int      `json:"redirected"`
	Failed     int      `json:"failed"`
	P50        *float64 `json:"p50_ms"` // of served requests; null without any
	P99        *float64 `json:"p99_ms"`
}

func (r *Result) add(class spillway.Criticality, a answer, took time.Duration, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.Classes[class.Index()]
	*[...]*int{served: &c.Served, rejected: &c.Rejected, timedOut: &c.TimedOut, redirected: &c.Redirected, failed: &c.Failed}[a]++
	if a == served {
		r.latencies[class.Index()] = append(r.latencies[class.Index()], took)
	}
	if failure != nil && r.Failure == "" {
		r.Failure = failure.Error()
	}
}

func (r *Result) countSent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Sent++
}

// fullRate is the share of the rate from which on the load counts as complete.
const fullRate = 0.9

// slower says why the load had less than its rate. It is empty if the load had it.
func (r *Result) slower() string {
	if float64(r.Sent) >= fullRate*r.Rate*r.Seconds {
		return ""
	}
	return fmt.Sprintf("%.0f/s were sent, not %.0f/s: all %d workers waited for answers (--workers)\n", float64(r.Sent)/r.Seconds, r.Rate, r.Workers)
}

// finish computes what all answers are needed for.
func (r *Result) finish(took time.Duration) {
	r.Seconds = took.Seconds()
	for i := range r.Classes {
		r.Classes[i].P50, r.Classes[i].P99 = Quantile(r.latencies[i], 0.5), Quantile(r.latencies[i], 0.99)
	}
}

// Answered reports whether the target served a request.
func (r *Result) Answered() bool {
	return slices.ContainsFunc(r.Classes, func(c Class) bool { return c.Served > 0 })
}

// WriteTable writes the counts as a table.
func (r *Result) WriteTable(w io.Writer) error {
	if r.Interrupted {
		fmt.Fprint(w, "INTERRUPTED: what follows was measured until then\n")
	}
	fmt.Fprintf(w, "%s, %.1f s\n%s", r.Target, r.Seconds, r.slower())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "criticality\tserved\trejected\ttimed out\tredirected\tfailed\tp50 ms\tp99 ms")
	for _, c := range slices.Backward(r.Classes) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", c.Class, c.Served, c.Rejected, c.TimedOut, c.Redirected, c.Failed, latency(c.P50), latency(c.P99))
	}
	if err := t.Flush(); err != nil || r.Failure == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "the first failure: %s\n", r.Failure)
	return err
}

// latency writes milliseconds, a dash where there is no answer.
func latency(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *ms)
}
