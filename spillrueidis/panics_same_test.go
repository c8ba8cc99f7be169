package spillrueidis

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
)

// An aftermath is what a caller sees whose code panics, and after it.
type aftermath struct {
	value  any  // recovered
	served bool // the next command; false if there is no client
}

// An opener makes a client.
type opener func(rueidis.ClientOption) (rueidis.Client, error)

// What panics in code of the user panics for the same caller as with rueidis alone, and the next command is served if it is served
// there. A later dial that panics blocks all commands of rueidis for good.
func TestPanicsAreThoseOfRueidis(t *testing.T) {
	alone := rueidis.NewClient
	behind := func(opt rueidis.ClientOption) (rueidis.Client, error) { return NewClient(opt, egress.Config{}) }
	for name, use := range map[string]func(context.Context, rueidis.Client) error{
		"dial": nil,
		"dedicated": func(_ context.Context, c rueidis.Client) error {
			return c.Dedicated(func(rueidis.DedicatedClient) error { panic("user") })
		},
		"message": func(ctx context.Context, c rueidis.Client) error {
			return c.Receive(ctx, c.B().Subscribe().Channel("c").Build(), func(rueidis.PubSubMessage) { panic("user") })
		},
	} {
		bare, ours := panicsIn(t, use, alone), panicsIn(t, use, behind)
		if ours != bare || bare.value != "user" || bare.served != (use != nil) {
			t.Errorf("%s: %+v, with rueidis alone %+v", name, ours, bare)
		}
	}
}

// panicsIn uses a client. If use is nil, the dial of its first connection panics.
func panicsIn(t *testing.T, use func(context.Context, rueidis.Client) error, open opener) (a aftermath) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{seen: make(map[string]int)}
		s.answer = func(_ string, args []string) string {
			if args[0] == "SUBSCRIBE" {
				return ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"
			}
			return "$1\r\nv\r\n"
		}
		opt := rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true, DisableRetry: true, RingScaleEachConn: 8}
		var mu sync.Mutex
		var conns []net.Conn
		opt.DialCtxFn = func(ctx context.Context, node string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			if use == nil {
				panic("user")
			}
			conn, err := s.dial(ctx, node, d, c)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, conn)
			return conn, err
		}
		var client rueidis.Client
		func() {
			defer func() { a.value = recover() }()
			var err error
			if client, err = open(opt); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = use(ctx, client)
		}()
		if client == nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a.served = client.Do(ctx, client.B().Get().Key("k").Build()).Error() == nil
		client.Close()
		for _, conn := range conns { // rueidis keeps the one of Dedicated
			_ = conn.Close()
		}
		time.Sleep(time.Minute)
	})
	return a
}
