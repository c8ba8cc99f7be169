package spillredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/retry"
)

// backoff is the wait before a retry where the caller gives no strategy. Retries meet the
// same server, so they must not come at once: 50 ms is the base of AWS SDKs for failures
// that pass, and 1 s bounds what a caller waits.
var backoff = retry.Backoff{Base: 50 * time.Millisecond, Max: time.Second}

// NewClient returns a [redis.Client] whose commands pass the policies of c. It does not
// change opt. The client of the copy makes no retries: MaxRetries becomes -1
// and DialerRetries 1. It fails if c is not valid.
func NewClient(opt *redis.Options, c egress.Config) (*redis.Client, error) {
	own := *opt
	own.MaxRetries, own.DialerRetries = -1, 1
	client := redis.NewClient(&own)
	if _, err := Install(client, c); err != nil {
		_ = client.Close() // it has no connections yet
		return nil, err
	}
	return client, nil
}

// NewClusterClient returns a [redis.ClusterClient] whose commands pass the policies of c,
// as NewClient does. Each node has its own throttle and in-flight limit. All
// share the retry budget. MaxRedirects is kept: go-redis follows MOVED and ASK.
func NewClusterClient(opt *redis.ClusterOptions, c egress.Config) (*redis.ClusterClient, error) {
	own := *opt
	own.MaxRetries, own.DialerRetries = -1, 1
	client := redis.NewClusterClient(&own)
	if _, err := Install(client, c); err != nil {
		_ = client.Close() // it has no connections yet
		return nil, err
	}
	return client, nil
}

// Install makes the commands of client pass the policies of c, one [egress.Client] for
// each address. Call it once, before the first command. The client must be a
// [redis.Client] (failover clients included), a [redis.ClusterClient] or a [redis.Ring],
// and its MaxRetries must be -1, as only one layer may retry; set DialerRetries to 1 for
// the same reason. The Pool that Install returns has the statistics and changes the
// configuration.
//
// If c.Retry is nil, the strategy is [retry.Budgeted] with a backoff of 50 ms to 1 s.
func Install(client redis.UniversalClient, c egress.Config) (*egress.Pool, error) {
	if c.Retry == nil {
		s, err := retry.NewBudgeted(retry.BudgetedConfig{Backoff: backoff})
		if err != nil {
			return nil, fmt.Errorf("spillredis: %w", err)
		}
		c.Retry = s
	}
	pool, err := egress.NewPool(c, 0)
	if err != nil {
		return nil, fmt.Errorf("spillredis: %w", err)
	}
	var retries int
	var add func()
	node := func(n *redis.Client) {
		n.AddHook(&hook{pool: pool, address: n.Options().Addr, redial: newRedialer(n.Options().PoolSize)})
	}
	switch client := client.(type) {
	case *redis.Client:
		retries, add = client.Options().MaxRetries, func() { node(client) }
	case *redis.ClusterClient:
		retries, add = client.Options().MaxRetries, func() { client.AddHook(cluster{}); client.OnNewNode(node) }
	case *redis.Ring:
		retries, add = client.Options().MaxRetries, func() { client.OnNewNode(node) }
	default:
		return nil, invalid.Field("spillredis", "client", fmt.Sprintf("%T", client), "a *redis.Client, *redis.ClusterClient or *redis.Ring")
	}
	if retries > 0 {
		return nil, invalid.Field("spillredis", "Options.MaxRetries", retries, "-1: only one layer may retry")
	}
	add()
	return pool, nil
}

// Idempotent returns a context whose commands may be sent again although the server may
// have executed them: their effect must be the same. Reads need it not.
func Idempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

type idempotentKey struct{}
