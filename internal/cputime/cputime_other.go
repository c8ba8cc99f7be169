//go:build !unix

package cputime

import (
	"errors"
	"time"
)

// Process returns an error.
func Process() (time.Duration, error) {
	return 0, errors.New("cpu: processor time is read on Unix only")
}
