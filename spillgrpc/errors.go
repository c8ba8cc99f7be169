package spillgrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// statusError gives an error of ours a status of gRPC. What it wraps is found by
// [errors.Is] and [errors.As].
type statusError struct {
	error

	status *status.Status
}

func newStatusError(code codes.Code, err error, text string) *statusError {
	return &statusError{err, status.New(code, text)}
}

func (e *statusError) Error() string              { return e.status.Message() }
func (e *statusError) Unwrap() error              { return e.error }
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// attemptError is how an attempt failed, and what that means. It has the status
// and the text of the error that grpc returned.
type attemptError struct {
	error

	failure fault.Failure
	left    error // why the caller has left, if they have
}

func (e *attemptError) Unwrap() error              { return e.error }
func (e *attemptError) Is(target error) bool       { return e.left != nil && target == e.left }
func (e *attemptError) Failure() fault.Failure     { return e.failure }
func (e *attemptError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// errorOf returns the error of a call as its caller gets it: with a status,
// any maker.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	stopped, retried := errors.AsType[*retry.Error](err)
	switch {
	case retried && errors.Is(stopped.Why, context.Canceled):
		return newStatusError(codes.Canceled, err, err.Error())
	case retried && errors.Is(stopped.Why, context.DeadlineExceeded):
		return newStatusError(codes.DeadlineExceeded, err, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, spillway.ErrRejected) {
		return newStatusError(codes.Unavailable, err, err.Error())
	}
	return newStatusError(status.FromContextError(err).Code(), err, err.Error())
}
