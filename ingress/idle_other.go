//go:build !linux

package ingress

import "errors"

func newPolled() (idle, error) { return nil, errors.ErrUnsupported }
