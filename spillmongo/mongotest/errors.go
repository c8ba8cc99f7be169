package mongotest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
)

// Codes of errors, as in MongoDB.
const (
	codeUnauthorized             = 13
	codeIllegalOperation         = 20
	codeCursorNotFound           = 43
	codeCommandNotFound          = 59
	codeTransactionTooOld        = 225
	codeNoSuchTransaction        = 251
	codeTransactionCommitted     = 256
	codeTooManyLogicalSessions   = 261
	codeIngressRequestRateLimit  = 462
	codeInterruptedDueToOverload = 473
	codeNotWritablePrimary       = 10107
	codeNotPrimaryNoSecondaryOk  = 13435
)

// Labels of errors.
const (
	labelOverloaded     = "SystemOverloadedError"
	labelRetryable      = "RetryableError"
	labelRetryableWrite = "RetryableWriteError"
	labelTransient      = "TransientTransactionError"
	labelResumable      = "ResumableChangeStreamError"
)

// errClose ends the connection without a reply.
var errClose = errors.New("mongotest: close the connection")

// A commandError is a reply that says that the command has failed.
type commandError struct {
	code    int32
	message string
	labels  []string // nil for those that belong to the code
}

func (e *commandError) Error() string { return fmt.Sprintf("(%s) %s", codeName(e.code), e.message) }

func failf(code int32, format string, args ...any) error {
	return &commandError{code: code, message: fmt.Sprintf(format, args...)}
}

// asCommandError returns the answer to the client for err.
func asCommandError(err error) *commandError {
	if ce, ok := errors.AsType[*commandError](err); ok {
		return ce
	}
	if de, ok := errors.AsType[*docdb.Error](err); ok {
		return &commandError{code: de.Code, message: de.Message}
	}
	return &commandError{code: 1, message: err.Error()}
}

// finish makes the reply of what a command returned.
func (r *request) finish(doc bson.D, err error) bson.D {
	if err != nil {
		doc = r.rejection(asCommandError(err))
	} else {
		doc = append(doc, bson.E{Key: "ok", Value: 1.0})
	}
	if r.node.deployment.config.Topology == Standalone {
		return doc
	}
	// A time for causal consistency. The signature is that of a server without keys.
	now := bson.Timestamp{T: uint32(time.Now().Unix()), I: r.node.deployment.db.Now() + 1}
	return append(doc,
		bson.E{Key: "$clusterTime", Value: bson.D{
			{Key: "clusterTime", Value: now},
			{Key: "signature", Value: bson.D{{Key: "hash", Value: make([]byte, 20)}, {Key: "keyId", Value: int64(0)}}},
		}},
		bson.E{Key: "operationTime", Value: now})
}

func (r *request) rejection(e *commandError) bson.D {
	doc := bson.D{
		{Key: "ok", Value: 0.0},
		{Key: "errmsg", Value: e.message},
		{Key: "code", Value: e.code},
		{Key: "codeName", Value: codeName(e.code)},
	}
	labels := e.labels
	if labels == nil {
		labels = r.labelsOf(e.code)
	}
	if len(labels) > 0 {
		doc = append(doc, bson.E{Key: "errorLabels", Value: labels})
	}
	if ms := r.node.limits.parameters().BaseBackoffMS; ms > 0 && slices.Contains(labels, labelOverloaded) {
		doc = append(doc, bson.E{Key: "baseBackoffMS", Value: ms})
	}
	if isNotPrimary(e.code) {
		now, _ := r.node.topology()
		doc = append(doc, bson.E{Key: "topologyVersion", Value: now})
	}
	return doc
}

// labelsOf returns the labels that a server gives an error with the code.
func (r *request) labelsOf(code int32) (labels []string) {
	switch code {
	case 433, 449, 450, codeIngressRequestRateLimit:
		labels = append(labels, labelOverloaded)
		if r.node.limits.parameters().AllowRetries {
			labels = append(labels, labelRetryable)
		}
	case codeInterruptedDueToOverload:
		labels = append(labels, labelOverloaded)
	}
	ends := r.name == "commitTransaction" || r.name == "abortTransaction"
	numbered := !r.body.Lookup("txnNumber").IsZero()
	inTransaction := numbered && !r.body.Lookup("autocommit").IsZero()
	if isRetryable(code) && numbered && (ends || !inTransaction) && r.node.deployment.config.Topology != Standalone {
		labels = append(labels, labelRetryableWrite)
	}
	if inTransaction && (code == codeNoSuchTransaction || isTransient(code) || !ends && isRetryable(code)) {
		labels = append(labels, labelTransient)
	}
	return labels
}

func isNotPrimary(code int32) bool {
	return slices.Contains([]int32{189, 91, 10107, 11600, 11602, 13435, 13436}, code)
}

// isRetryable reports whether a write that failed with the code may be sent again.
func isRetryable(code int32) bool {
	return isNotPrimary(code) || slices.Contains([]int32{6, 7, 89, 134, 262, 9001}, code)
}

// isResumable reports whether a change stream that failed with the code may go on where
// it was.
func isResumable(code int32) bool {
	return code != 11601 && (isRetryable(code) || slices.Contains([]int32{43, 63, 133, 150, 234, 13388}, code))
}

// isTransient reports whether a transaction that failed with the code may be tried
// again from its start.
func isTransient(code int32) bool {
	return slices.Contains([]int32{24, docdb.WriteConflict, 246, 267}, code)
}

// isOK reports whether a reply says that the command has succeeded.
func isOK(reply bson.Raw) bool {
	ok, _ := reply.Lookup("ok").DoubleOK()
	return ok == 1
}

func codeName(code int32) string {
	if name, ok := codeNames[code]; ok {
		return name
	}
	return fmt.Sprintf("Location%d", code)
}

var codeNames = map[int32]string{
	1:     "InternalError",
	2:     "BadValue",
	6:     "HostUnreachable",
	7:     "HostNotFound",
	8:     "UnknownError",
	9:     "FailedToParse",
	11:    "UserNotFound",
	13:    "Unauthorized",
	14:    "TypeMismatch",
	18:    "AuthenticationFailed",
	20:    "IllegalOperation",
	24:    "LockTimeout",
	26:    "NamespaceNotFound",
	27:    "IndexNotFound",
	28:    "PathNotViable",
	43:    "CursorNotFound",
	48:    "NamespaceExists",
	50:    "MaxTimeMSExpired",
	59:    "CommandNotFound",
	64:    "WriteConcernFailed",
	66:    "ImmutableField",
	67:    "CannotCreateIndex",
	72:    "InvalidOptions",
	73:    "InvalidNamespace",
	89:    "NetworkTimeout",
	91:    "ShutdownInProgress",
	100:   "UnsatisfiableWriteConcern",
	112:   "WriteConflict",
	115:   "CommandNotSupported",
	134:   "ReadConcernMajorityNotAvailableYet",
	168:   "InvalidPipelineOperator",
	189:   "PrimarySteppedDown",
	225:   "TransactionTooOld",
	246:   "SnapshotUnavailable",
	251:   "NoSuchTransaction",
	256:   "TransactionCommitted",
	261:   "TooManyLogicalSessions",
	262:   "ExceededTimeLimit",
	267:   "PreparedTransactionInProgress",
	286:   "ChangeStreamHistoryLost",
	391:   "ReauthenticationRequired",
	433:   "AdmissionQueueOverflow",
	449:   "RateLimitExceeded",
	450:   "PooledConnectionAcquisitionRejected",
	462:   "IngressRequestRateLimitExceeded",
	473:   "InterruptedDueToOverload",
	9001:  "SocketException",
	10107: "NotWritablePrimary",
	10334: "BSONObjectTooLarge",
	11000: "DuplicateKey",
	11600: "InterruptedAtShutdown",
	11601: "Interrupted",
	11602: "InterruptedDueToReplStateChange",
	13435: "NotPrimaryNoSecondaryOk",
	13436: "NotPrimaryOrSecondary",
	14031: "OutOfDiskSpace",
}
