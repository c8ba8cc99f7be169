package costdrill

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// The bounds of a drill that passed. A customer may use up to half more or less than its share, as the error
// of a cost that is used is up to 30 %, and a bucket is kept full for a second. Counting
// requests must let it take at least 7 of the 10 times, or the machine was too slow for a comparison.
const (
	mostUse     = 1.5
	leastUse    = 0.5
	leastExcess = 7.0
	leastCheap  = 0.95
)

// Ratios returns the use of the expensive customer in shares, when requests are counted and with learned
// costs.
func (r *Result) Ratios() (requests, learned float64) {
	return r.Requests.ExpensiveUse / r.Share, r.Learned.ExpensiveUse / r.Share
}

// Compares reports whether the machine could do the work that the comparison needs.
func (r *Result) Compares() bool {
	requests, _ := r.Ratios()
	return requests >= leastExcess && r.Requests.CheapAnswered >= leastCheap
}

// Passed reports whether learned costs held the expensive customer to its share, and left the
// cheap one alone.
func (r *Result) Passed() bool {
	_, learned := r.Ratios()
	return learned >= leastUse && learned <= mostUse && r.Learned.CheapAnswered >= leastCheap
}

// WriteTable writes r as text.
func (r *Result) WriteTable(w io.Writer) error {
	requests, learned := r.Ratios()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "quota counts\trequests\tlearned cost\t")
	fmt.Fprintf(t, "expensive customer uses, of its share\t%.2f\t%.2f\t\n", requests, learned)
	fmt.Fprintf(t, "the same in ms of processor time per second\t%.0f\t%.0f\t\n", r.Requests.ExpensiveUse, r.Learned.ExpensiveUse)
	fmt.Fprintf(t, "cheap customer's calls that were answered\t%.1f %%\t%.1f %%\t\n", 100*r.Requests.CheapAnswered, 100*r.Learned.CheapAnswered)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, k := range r.Learned.Costs {
		takes, off := k.Cost.Round(10*time.Microsecond), k.StandardError.Round(10*time.Microsecond)
		if _, err := fmt.Fprintf(w, "learned: a call of %s takes %v ± %v\n", k.Key, takes, off); err != nil {
			return err
		}
	}
	verdict := "passed: the expensive customer is held to its share"
	switch {
	case !r.Compares():
		verdict = "no comparison: this machine was too busy for the calls that a quota of requests admits"
	case !r.Passed():
		verdict = fmt.Sprintf("failed: the expensive customer uses %.2f of its share, not %v to %v; or cheap calls were rejected", learned, leastUse, mostUse)
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}
