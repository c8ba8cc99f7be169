package retry

import (
	"fmt"
	"time"
)

// A validator puts the fields of a Config in place of the defaults, unless they
// are zero, and keeps the first complaint.
type validator struct{ err error }

func (v *validator) failf(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf("retry: "+format, args...)
	}
}

func (v *validator) count(field string, value int, to *int) {
	switch {
	case value < 0:
		v.failf("%s is %d, must be positive", field, value)
	case value > 0:
		*to = value
	}
}

func (v *validator) duration(field string, value time.Duration, to *time.Duration) {
	switch {
	case value < 0:
		v.failf("%s is %v, must not be negative", field, value)
	case value > 0:
		*to = value
	}
}

// backoff takes both fields or none.
func (v *validator) backoff(value Backoff, to *Backoff) {
	if value.Base < 0 || value.Max < 0 {
		v.failf("Backoff is %v to %v, must not be negative", value.Base, value.Max)
	}
	if value != (Backoff{}) {
		*to = value
	}
}

func (v *validator) tokens(field string, value float64, to *float64) {
	switch {
	case !(value <= 1e9):
		v.failf("%s is %v, must be at most 1e9", field, value)
	case value < 0:
		*to = 0
	case value > 0:
		*to = value
	}
}
