package docdb

import "fmt"

// Codes of errors, as in MongoDB.
const (
	BadValue              = 2
	FailedToParse         = 9
	TypeMismatch          = 14
	NamespaceNotFound     = 26
	IndexNotFound         = 27
	PathNotViable         = 28
	NamespaceExists       = 48
	WriteConflict         = 112
	CommandNotSupported   = 115
	InvalidOptions        = 72
	ImmutableField        = 66
	InvalidNamespace      = 73
	DuplicateKey          = 11000
	ChangeStreamHistory   = 286
	OutOfDiskSpace        = 14031
	BSONObjectTooLarge    = 10334
	UnknownPipelineStage  = 40324
	UnknownAccumulator    = 15952
	UnsupportedExpression = 168
)

// An Error is an error with its MongoDB code.
type Error struct {
	Code    int32
	Message string
}

func (e *Error) Error() string { return e.Message }

func fail(code int32, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
