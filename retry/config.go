package retry

import (
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A validator replaces defaults by the fields of a Config that are not zero. It keeps the first
// error.
type validator struct{ err error }

func (v *validator) check(good bool, path string, value any, allowed string) {
	if !good && v.err == nil {
		v.err = invalid.Field("retry", path, value, "%s", allowed)
	}
}

func (v *validator) count(field string, value int, to *int) {
	v.check(value >= 0, field, value, "0 or more")
	if value > 0 {
		*to = value
	}
}

func (v *validator) duration(field string, value time.Duration, to *time.Duration) {
	v.check(value >= 0, field, value, "0 or more")
	if value > 0 {
		*to = value
	}
}

// backoff sets both fields, or none.
func (v *validator) backoff(value Backoff, to *Backoff) {
	v.check(value.Base >= 0, "Backoff.Base", value.Base, "0 or more")
	v.check(value.Max >= 0, "Backoff.Max", value.Max, "0 or more")
	if value != (Backoff{}) {
		*to = value
	}
}

func (v *validator) tokens(field string, value float64, to *float64) {
	v.check(value <= 1e9, field, value, "at most 1e9")
	if value != 0 {
		*to = max(value, 0)
	}
}
