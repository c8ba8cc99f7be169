package spillrueidis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// DoCache returns a value from the cache of this process, or fetches it. A cached value is no
// load: it informs no policy, and it is returned also while the policies reject commands.
func (c *Client) DoCache(ctx context.Context, cmd rueidis.Cacheable, ttl time.Duration) (r rueidis.RedisResult) {
	cmd.Pin()
	err := c.do(ctx, c.policies(cmd.Slot()), cached(cmd.Commands()[0]), func(ctx context.Context) error {
		r = c.Client.DoCache(ctx, cmd, ttl)
		if r.IsCacheHit() {
			return errCached
		}
		return r.Error()
	})
	if errors.Is(err, spillway.ErrRejected) {
		if hit := c.Client.DoCache(ended, cmd, ttl); hit.IsCacheHit() {
			return hit
		}
	}
	return result(r, err)
}

// DoMultiCache is DoCache for several commands. The commands without a cached value are sent
// together. In a cluster the commands for each shard are one call.
func (c *Client) DoMultiCache(ctx context.Context, multi ...rueidis.CacheableTTL) []rueidis.RedisResult {
	return spread(c, len(multi), func(i int) uint16 { return multi[i].Cmd.Slot() }, func(to *egress.Client, of []int) []rueidis.RedisResult {
		some := pick(multi, of)
		for _, x := range some {
			x.Cmd.Pin()
		}
		var all []rueidis.RedisResult
		err := c.do(ctx, to, cached("pipeline"), func(ctx context.Context) error {
			all = c.Client.DoMultiCache(ctx, some...)
			if hits(all) == len(all) {
				return errCached
			}
			return judge(all)
		})
		if errors.Is(err, spillway.ErrRejected) {
			if try := c.Client.DoMultiCache(ended, some...); hits(try) > 0 {
				return withError(try, plain(err))
			}
		}
		if all == nil {
			return fail(len(some), plain(err))
		}
		return all
	})
}

// cached describes a command whose answer is cached.
func cached(key string) spillway.Call {
	return spillway.Call{Key: key, Kind: spillway.KindRead, Idempotent: true}
}

// ended is a context that has ended: with it rueidis returns what it has cached, and sends nothing.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// hits returns how many results are from the cache.
func hits(all []rueidis.RedisResult) (n int) {
	for _, r := range all {
		if r.IsCacheHit() {
			n++
		}
	}
	return n
}

// withError gives all results that are not from the cache the error err.
func withError(all []rueidis.RedisResult, err error) []rueidis.RedisResult {
	for i := range all {
		if !all[i].IsCacheHit() {
			all[i] = rueidis.NewErrorResult(err)
		}
	}
	return all
}
