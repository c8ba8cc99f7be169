//go:build !unix

package load

import (
	"errors"
	"time"
)

func processTime() (time.Duration, error) {
	return 0, errors.New("cpu: processor time is read on Unix only")
}
