package spillrueidis

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
)

// Receive subscribes to channels and calls fn for each message. It takes a slot in flight only until it
// has subscribed. When it loses its connection it subscribes again, under the rules for retries. After a
// subscription that has lasted for a second, that is a new call with attempts of its own.
func (c *Client) Receive(ctx context.Context, subscribe rueidis.Completed, fn func(rueidis.PubSubMessage)) error {
	subscribe.Pin()
	for {
		lasted := false
		err := c.do(ctx, c.policies(subscribe.Slot()), subscription(subscribe), func(ctx context.Context) error {
			s := &subscribed{Context: ctx}
			s.hook = rueidis.WithOnSubscriptionHook(context.Background(), s.confirmed)
			err := c.Client.Receive(s, subscribe, fn)
			if lasted = s.lasted() && !success(err) && describe(ctx, err).failure.Retryable(true); lasted {
				return &partly{error: err} // the call ends
			}
			return err
		})
		if !lasted {
			return plain(err)
		}
	}
}

// subscription describes a subscription: it lasts until the caller ends it.
func subscription(cmd rueidis.Completed) spillway.Call {
	return spillway.Call{Key: cmd.Commands()[0], Kind: spillway.KindRead, Idempotent: true, LongPoll: true}
}

// subscribed is the context of an attempt to subscribe. rueidis finds a hook in it that notes when the server
// has confirmed the subscription, and then calls that of the caller.
type subscribed struct {
	context.Context //nolint:containedctx // it is one

	hook  context.Context //nolint:containedctx // as above
	since atomic.Pointer[time.Time]
}

// Value implements [context.Context].
func (s *subscribed) Value(key any) any {
	theirs := s.Context.Value(key)
	own, ok := s.hook.Value(key).(func(rueidis.PubSubSubscription))
	if !ok {
		return theirs
	}
	if theirs, ok := theirs.(func(rueidis.PubSubSubscription)); ok && theirs != nil {
		return func(e rueidis.PubSubSubscription) {
			own(e)
			theirs(e)
		}
	}
	return own
}

func (s *subscribed) confirmed(e rueidis.PubSubSubscription) {
	if now := time.Now(); !strings.HasSuffix(e.Kind, "unsubscribe") {
		s.since.CompareAndSwap(nil, &now)
	}
}

// lasted reports whether the server confirmed the subscription a second ago or earlier, so that new calls come at
// most once per second.
func (s *subscribed) lasted() bool {
	since := s.since.Load()
	return since != nil && time.Since(*since) >= time.Second
}
