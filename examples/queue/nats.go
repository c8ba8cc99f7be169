//go:build thorough

package queue

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// Handler returns a handler of messages for Consume of a JetStream consumer. It has work done behind the gates, each message in a
// new goroutine: MaxAckPending of the consumer limits how many there are. A rejected message is delivered again after the time that the
// rejection states, and a failed one at once, MaxDeliver times at most. Leave the line with the tag out of a copy: it is
// for the half minute that the broker of the test takes to compile.
func Handler(ctx context.Context, server *ingress.Server, work func(context.Context, jetstream.Msg) error) jetstream.MessageHandler {
	return func(m jetstream.Msg) {
		go func() { _ = handle(ctx, server, m, work) }() // what cannot be acknowledged comes again
	}
}

func handle(ctx context.Context, server *ingress.Server, m jetstream.Msg, work func(context.Context, jetstream.Msg) error) error {
	why, err := server.Do(ctx, callOf(m), func(ctx context.Context) error { return work(ctx, m) })
	switch {
	case why.Rejected():
		return m.NakWithDelay(why.RetryAfter)
	case err != nil:
		return m.Nak()
	default:
		return m.Ack()
	}
}

// callOf says how important a message is: its publisher has labeled it.
func callOf(m jetstream.Msg) spillway.Call {
	call := spillway.Call{Key: m.Subject()}
	if class, err := spillway.ParseCriticality(m.Headers().Get("X-Request-Criticality")); err == nil {
		call.Criticality = class
	}
	return call
}
