package spillrueidis

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
)

const confirmed = ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"

// subscribe receives messages until ctx ends.
func (c *Client) subscribe(ctx context.Context) error {
	return c.Receive(ctx, c.B().Subscribe().Channel("c").Build(), func(rueidis.PubSubMessage) {})
}

// A subscription outlives any number of broken connections, if it has lasted for a while on each. The hook that a
// caller has set sees each confirmation.
func TestSubscriptionsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{seen: make(map[string]int)}
		s.answer = func(_ string, args []string) string {
			switch args[0] {
			case "SUBSCRIBE":
				return confirmed
			case "GET":
				return "" // the connection ends
			}
			return "$1\r\nv\r\n"
		}
		client := s.client(t, egress.Config{}, rueidis.ClientOption{
			InitAddress: []string{address}, ForceSingleClient: true, PipelineMultiplex: -1, // one connection
		})
		var hooked atomic.Int64
		ctx, cancel := context.WithCancel(rueidis.WithOnSubscriptionHook(t.Context(), func(rueidis.PubSubSubscription) { hooked.Add(1) }))
		done := make(chan error, 1)
		go func() { done <- client.subscribe(ctx) }()
		for range 20 {
			time.Sleep(time.Hour)
			_ = client.Client.Do(t.Context(), client.B().Get().Key("k").Build())
		}
		time.Sleep(time.Hour)
		select {
		case err := <-done:
			t.Errorf("the subscription has ended: %v", err)
			done <- err
		default:
		}
		if n := s.count("SUBSCRIBE"); n != 21 || hooked.Load() != 21 {
			t.Errorf("subscribed %d times, the hook of the caller saw %d, want 21", n, hooked.Load())
		}
		client.idle(t)
		cancel()
		<-done
		end(client)
	})
}

// A server that confirms a subscription and then ends the connection gets the attempts of one call.
func TestSubscriptionsThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{seen: make(map[string]int)}
		s.answer = func(string, []string) string { return confirmed + "?" }
		client := s.client(t, egress.Config{}, rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true})
		if err := client.subscribe(t.Context()); err == nil {
			t.Error("no error")
		}
		if n := s.count("SUBSCRIBE"); n != 3 {
			t.Errorf("subscribed %d times, want 3", n)
		}
		client.idle(t)
		end(client)
	})
}
