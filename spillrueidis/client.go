package spillrueidis

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
)

// A Client is a [rueidis.Client] whose commands pass the policies of Spillway. It is safe for
// concurrent use; make one with [NewClient] and call Close when it is not used any more.
type Client struct {
	rueidis.Client

	pool    *egress.Pool
	shards  *shards       // of a cluster, else nil
	backend string        // of commands that no shard is known for
	opensIn time.Duration // at most: a connection
}

var _ rueidis.Client = (*Client)(nil)

// Stats returns the levels of the policies by backend: the address of a server, or of the master
// of a shard, or the name of a master that is found by Sentinel.
func (c *Client) Stats(now time.Time) map[string]egress.Stats { return c.pool.Stats(now) }

// Update changes the configuration, or returns an error that names the field that is wrong and
// changes nothing, as [egress.Client.Update] does.
func (c *Client) Update(config egress.Config) error { return c.pool.Update(config) }

// Close closes the connections. Commands then fail with [rueidis.ErrClosing].
func (c *Client) Close() {
	c.shards.close()
	c.Client.Close()
}

// Do sends a command. The result has the last answer of the server. If the server did not
// answer, its error says why there was no further attempt; [spillway.ErrRejected] matches it if
// the policies rejected the command.
func (c *Client) Do(ctx context.Context, cmd rueidis.Completed) (r rueidis.RedisResult) {
	cmd.Pin() // for a retry
	err := c.do(ctx, c.policies(cmd.Slot()), callOf([]rueidis.Completed{cmd}), func(ctx context.Context) error {
		r = c.Client.Do(ctx, cmd)
		return r.Error()
	})
	return result(r, err)
}

// DoMulti sends commands together: they are one call, with one place in flight. In a cluster the
// commands for each shard are one call.
func (c *Client) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	return spread(c, len(multi), func(i int) uint16 { return multi[i].Slot() }, func(to *egress.Client, of []int) []rueidis.RedisResult {
		some := pick(multi, of)
		for _, cmd := range some {
			cmd.Pin()
		}
		return c.batch(ctx, to, callOf(some), len(some), func(ctx context.Context) []rueidis.RedisResult {
			return c.Client.DoMulti(ctx, some...)
		})
	})
}

// DoStream sends a command whose answer the caller reads. Its place in flight is given back when
// it is sent, and the policies do not see the answer.
func (c *Client) DoStream(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResultStream {
	return c.DoMultiStream(ctx, cmd)
}

// DoMultiStream sends commands together, as DoStream does.
func (c *Client) DoMultiStream(ctx context.Context, multi ...rueidis.Completed) (s rueidis.MultiRedisResultStream) {
	if len(multi) == 0 {
		return rueidis.NewErrorResultStream(io.EOF)
	}
	for _, cmd := range multi {
		cmd.Pin()
	}
	err := c.do(ctx, c.policies(slotOf(multi)), callOf(multi), func(ctx context.Context) error {
		s = c.Client.DoMultiStream(ctx, multi...)
		return s.Error()
	})
	if err != nil {
		return rueidis.NewErrorResultStream(plain(err))
	}
	return s
}

// Nodes returns a client for each node of a cluster, with the policies for its address.
func (c *Client) Nodes() map[string]rueidis.Client {
	all := c.Client.Nodes()
	for address, node := range all {
		all[address] = &Client{Client: node, pool: c.pool, backend: address, opensIn: c.opensIn}
	}
	return all
}

// do makes one call.
func (c *Client) do(ctx context.Context, to *egress.Client, call spillway.Call, send func(context.Context) error) error {
	err := to.Do(ctx, call, func(ctx context.Context, a *egress.Attempt) error {
		if call.LongPoll {
			// From here on the command waits for other clients, which is no load.
			a.GiveBack()
		}
		err := c.timed(ctx, send)
		for range maxOthers {
			if !anotherLeft(ctx, err) {
				break
			}
			err = c.timed(ctx, send) // at no one's expense: nothing was sent
		}
		if success(err) {
			return nil
		}
		if errors.Is(err, errCached) {
			return err
		}
		e := describe(ctx, err)
		if call.LongPoll && e.failure.Timeout && expired(ctx) {
			e.failure = fault.Failure{Canceled: true} // the caller stops waiting
		}
		return e
	})
	if errors.Is(err, errCached) {
		return nil
	}
	return err
}

// timed calls send. A connection that has taken as long to open as it may ends with the error of a context,
// as if the caller who opens it had left. So what has lasted that long was a timeout.
func (c *Client) timed(ctx context.Context, send func(context.Context) error) error {
	begun := time.Now()
	err := send(ctx)
	if !anotherLeft(ctx, err) || time.Since(begun) < c.opensIn {
		return err
	}
	if some, ok := err.(*partly); ok { //nolint:errorlint // judge returns it so
		return &partly{error: late{some.error}}
	}
	return late{err}
}

// batch makes one call of n commands.
func (c *Client) batch(
	ctx context.Context, to *egress.Client, call spillway.Call, n int, send func(context.Context) []rueidis.RedisResult,
) (all []rueidis.RedisResult) {
	err := c.do(ctx, to, call, func(ctx context.Context) error {
		all = send(ctx)
		return judge(all)
	})
	if all == nil { // it was never sent
		return fail(n, plain(err))
	}
	return all
}

// result returns the result of a call that has ended with err. The last answer of the server is
// returned as it is, because callers of rueidis compare its type.
func result(r rueidis.RedisResult, err error) rueidis.RedisResult {
	if _, answered := rueidis.IsRedisErr(r.Error()); err == nil || answered {
		return r
	}
	return rueidis.NewErrorResult(plain(err))
}

// plain returns the error of the command itself where nothing was added to it.
func plain(err error) error {
	if e, ok := err.(*classified); ok { //nolint:errorlint // only where err is nothing else
		return e.error
	}
	return err
}
