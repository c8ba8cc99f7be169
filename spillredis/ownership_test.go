package spillredis

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
)

// An argument is the caller's again when the command has returned, also if the caller has left between two attempts: each command that the
// server receives is of one piece.
func TestArgumentsAreTheCallersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var received, torn, left atomic.Int32
		_, client, _ := start(t, egress.Config{}, func(args []string) string {
			if args[0] != "set" {
				return "+OK\r\n"
			}
			if value := args[2]; strings.Trim(value, value[:1]) != "" {
				torn.Add(1)
			}
			if received.Add(1)%2 == 0 {
				return "-LOADING Redis is loading the dataset in memory\r\n"
			}
			return "+OK\r\n"
		})
		client.Options().ContextTimeoutEnabled = true
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				value := make([]byte, 1000)
				for n := range 20 {
					for j := range value {
						value[j] = byte('a' + (i+n)%26)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+n%4)*20*time.Millisecond)
					if client.Set(ctx, "k", value, 0).Err() != nil {
						left.Add(1)
					}
					cancel()
				}
			})
		}
		all.Wait()
		if received.Load() < 200 || torn.Load() > 0 || left.Load() == 0 {
			t.Errorf("%d commands, %d torn, %d left", received.Load(), torn.Load(), left.Load())
		}
		_ = client.Close()
	})
}

// Under saturation, with commands that are rejected, repeated and left, as many connections are opened as with go-redis alone.
func TestConnectionsAreThoseOfGoRedis(t *testing.T) {
	bare, ours := opened(t, 3, nil), opened(t, -1, func(c *redis.Client) error {
		_, err := Install(c, egress.Config{MaxInFlight: 10})
		return err
	})
	if ours > bare || bare < 10 {
		t.Errorf("%d connections opened, by go-redis alone %d", ours, bare)
	}
}

// opened returns how many connections a client opens, whose pool may have one for each caller. With fewer, go-redis would wait with timers
// that it shares with other bubbles.
func opened(t *testing.T, retries int, install func(*redis.Client) error) (dials int32) {
	t.Helper()
	const callers = 20
	synctest.Test(t, func(t *testing.T) {
		var n, commands atomic.Int32
		s := &server{seen: make(map[string]int), answer: func([]string) string {
			time.Sleep(10 * time.Millisecond)
			if commands.Add(1)%3 == 0 {
				return "-LOADING Redis is loading the dataset in memory\r\n"
			}
			return "$1\r\nv\r\n"
		}}
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", PoolSize: callers, MaxRetries: retries, Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			n.Add(1)
			return s.dial(ctx, network, address)
		}})
		if install != nil {
			if err := install(client); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					_ = client.Get(ctx, "k").Err()
					cancel()
				}
			})
		}
		all.Wait()
		_ = client.Close()
		dials = n.Load()
	})
	return dials
}
