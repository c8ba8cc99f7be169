package spillredis

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
)

// BenchmarkHook is what the hook adds to a command, without the command itself.
func BenchmarkHook(b *testing.B) {
	pool, err := egress.NewPool(egress.Config{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	h := &hook{pool: pool, address: "127.0.0.1:6379"}
	send := h.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	cmd := redis.NewStringCmd(b.Context(), "get", "key")
	b.ReportAllocs()
	for b.Loop() {
		if err := send(b.Context(), cmd); err != nil {
			b.Fatal(err)
		}
	}
}
