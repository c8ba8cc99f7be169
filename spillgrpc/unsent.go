package spillgrpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/unsent"
)

// The errors of grpc for calls that it has not sent have a status and no type. This is the only file that reads their
// texts; TestLessons has grpc say each of them.
var neverSentTexts = [...]struct {
	code codes.Code
	text string
}{
	// The caller left while grpc waited for a connection: WaitForReady, or a channel that connects.
	{codes.DeadlineExceeded, "while waiting for connections to become ready"},
	{codes.DeadlineExceeded, "latest balancer error: "},
	{codes.Canceled, "while waiting for connections to become ready"},
	{codes.Canceled, "latest balancer error: "},
	{codes.Canceled, "grpc: the client connection is closing"},
	// The message cannot be sent.
	{codes.Internal, "grpc: error while marshaling: "},
	{codes.Internal, "grpc: Compressor is not installed for requested grpc-encoding "},
	{codes.ResourceExhausted, "trying to send message larger than max "},
	// Its credentials cannot be had.
	{codes.Internal, "transport: per-RPC creds failed due to error: "},
	{codes.Unauthenticated, "transport: per-RPC creds failed due to error: "},
}

// neverSent returns what the status of an attempt means that was never sent, as grpc says. A server that says the same
// has sent metadata with it.
func neverSent(ctx context.Context, s *status.Status, trailer metadata.MD) (f fault.Failure, ok bool) {
	if len(trailer) > 0 {
		return f, false
	}
	if s.Code() == codes.Unavailable {
		return fault.Failure{Unsent: true, Safety: fault.RetrySafe}, trailer == nil && unsent.Said(s.Message())
	}
	for _, t := range neverSentTexts {
		if s.Code() == t.code && strings.Contains(s.Message(), t.text) {
			f.Unsent, f.Safety = true, fault.RetryUnsafe
			f.Canceled, f.Timeout = errors.Is(ctx.Err(), context.Canceled), errors.Is(ctx.Err(), context.DeadlineExceeded)
			return f, true
		}
	}
	return f, false
}
