package spillrueidis

import (
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

const (
	// backoffBase and backoffMax bound the wait before a retry where the caller gives no strategy.
	// Retries meet the same server, so they must not come at once: 50 ms is the base of AWS SDKs
	// for failures that pass, and 1 s bounds what a caller waits.
	backoffBase = 50 * time.Millisecond
	backoffMax  = time.Second
	// maxRedirects is how many redirections a command follows if the options do not say, as in
	// go-redis. rueidis follows them without a pause until the context ends, so two nodes that
	// each name the other would be flooded.
	maxRedirects = 3
)

// NewClient returns a client for opt whose commands pass the policies of c: a single server, a
// cluster, or a master that is found by Sentinel, as [rueidis.NewClient] decides. Each shard of a
// cluster has its own throttle and in-flight limit. All share the retry budget. It fails if c is
// not valid or no server can be reached. With ForceSingleClient it returns both the
// client and the error if the server cannot be reached, as rueidis does.
//
// These options differ from the defaults of rueidis: DisableRetry is always set, as only one
// layer may retry. AlwaysPipelining is set unless DisableAutoPipelining is: otherwise an expired
// deadline closes a connection that other callers share. MaxMovedRedirections is 3 if it is zero.
//
// If c.Retry is nil, the strategy is [retry.Budgeted] with a backoff of 50 ms to 1 s.
func NewClient(opt rueidis.ClientOption, c egress.Config) (*Client, error) {
	pool, err := newPool(c)
	if err != nil {
		return nil, fmt.Errorf("spillrueidis: %w", err)
	}
	opt.DisableRetry = true
	opt.AlwaysPipelining = !opt.DisableAutoPipelining
	if opt.ClusterOption.MaxMovedRedirections == 0 {
		opt.ClusterOption.MaxMovedRedirections = maxRedirects
	}
	inner, err := rueidis.NewClient(opt)
	if inner == nil {
		return nil, fmt.Errorf("spillrueidis: %w", err)
	}
	client := &Client{Client: inner, pool: pool, backend: backendOf(&opt), opensIn: opt.Dialer.Timeout}
	if client.opensIn <= 0 {
		client.opensIn = rueidis.DefaultDialTimeout // for the handshake too
	}
	if inner.Mode() == rueidis.ClientModeCluster {
		client.shards = newShards(inner)
	}
	return client, err
}

// newPool returns the policies.
func newPool(c egress.Config) (*egress.Pool, error) {
	if c.Retry == nil {
		s, err := retry.NewBudgeted(retry.BudgetedConfig{Backoff: retry.Backoff{Base: backoffBase, Max: backoffMax}})
		if err != nil {
			return nil, err
		}
		c.Retry = s
	}
	return egress.NewPool(c, 0)
}

// backendOf names the backend of commands that no shard of a cluster is known for.
func backendOf(opt *rueidis.ClientOption) string {
	if opt.Sentinel.MasterSet != "" {
		return opt.Sentinel.MasterSet
	}
	return opt.InitAddress[0] // rueidis fails without one
}
