package spillaws

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed90641741/spillway/fault"
)

// words are what an error of the SDK, and the errors that it wraps say in the SDK's
// own terms. As everywhere in the SDK, the outermost error that knows is believed.
type words struct {
	response  *http.Response    // nil if the service has not answered
	code      string            // of a modelled error, or one that is not in the model
	fault     smithy.ErrorFault // of the same
	retryable aws.Ternary       // as the SDK found out otherwise, such as by clock skew
	canceled  bool              // the caller left
}

// hear returns what err has to say.
func hear(err error) words {
	var w words
	w.ask(err)
	return w
}

func (w *words) ask(err error) {
	for err != nil {
		w.listen(err)
		switch e := any(err).(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				w.ask(err)
			}
			return
		default:
			return
		}
	}
}

func (w *words) listen(err error) {
	if e, ok := err.(interface{ HTTPResponse() *smithyhttp.Response }); ok && w.response == nil {
		if r := e.HTTPResponse(); r != nil {
			w.response = r.Response
		}
	}
	if e, ok := err.(interface{ ErrorCode() string }); ok && w.code == "" {
		w.code = e.ErrorCode()
	}
	if e, ok := err.(interface{ ErrorFault() smithy.ErrorFault }); ok && w.fault == smithy.FaultUnknown {
		w.fault = e.ErrorFault()
	}
	if e, ok := err.(interface{ RetryableError() bool }); ok && w.retryable == aws.UnknownTernary {
		w.retryable = aws.BoolTernary(e.RetryableError())
	}
	if e, ok := err.(interface{ CanceledError() bool }); ok {
		w.canceled = w.canceled || e.CanceledError()
	}
}

// status returns the HTTP status of the answer, or zero.
func (w *words) status() int {
	if w.response == nil {
		return 0
	}
	return w.response.StatusCode
}

// party returns whose fault it was, by the model or else by the status.
func (w *words) party() fault.Party {
	switch {
	case w.fault == smithy.FaultClient:
		return fault.Client
	case w.fault == smithy.FaultServer, w.status() >= 500:
		return fault.Server
	case w.status() >= 400:
		return fault.Client
	default:
		return fault.Other
	}
}
