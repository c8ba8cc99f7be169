package spillrueidis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
)

// Dedicated calls fn with a client that has a separate connection, for WATCH, MULTI and EXEC.
// Its commands pass the policies one by one and are never repeated: what came before them on the
// connection would be missing.
func (c *Client) Dedicated(fn func(rueidis.DedicatedClient) error) error {
	return c.Client.Dedicated(func(d rueidis.DedicatedClient) error { return fn(&dedicated{d, c}) })
}

// Dedicate returns a client as Dedicated has it. cancel gives its connection back.
func (c *Client) Dedicate() (client rueidis.DedicatedClient, cancel func()) {
	d, cancel := c.Client.Dedicate()
	return &dedicated{d, c}, cancel
}

// dedicated is a client with a separate connection.
type dedicated struct {
	rueidis.DedicatedClient

	client *Client
}

// Do implements [rueidis.CoreClient].
func (d *dedicated) Do(ctx context.Context, cmd rueidis.Completed) (r rueidis.RedisResult) {
	err := d.once(ctx, cmd.Slot(), callOf([]rueidis.Completed{cmd}), func(ctx context.Context) error {
		r = d.DedicatedClient.Do(ctx, cmd)
		return r.Error()
	})
	return result(r, err)
}

// DoMulti implements [rueidis.CoreClient].
func (d *dedicated) DoMulti(ctx context.Context, multi ...rueidis.Completed) (all []rueidis.RedisResult) {
	if len(multi) == 0 {
		return nil
	}
	err := d.once(ctx, slotOf(multi), callOf(multi), func(ctx context.Context) error {
		all = d.DedicatedClient.DoMulti(ctx, multi...)
		return judge(all)
	})
	if all == nil {
		return fail(len(multi), plain(err))
	}
	return all
}

// Receive implements [rueidis.CoreClient].
func (d *dedicated) Receive(ctx context.Context, subscribe rueidis.Completed, fn func(rueidis.PubSubMessage)) error {
	return plain(d.once(ctx, subscribe.Slot(), subscription(subscribe), func(ctx context.Context) error {
		return d.DedicatedClient.Receive(ctx, subscribe, fn)
	}))
}

// once makes a call that is not repeated.
func (d *dedicated) once(ctx context.Context, slot uint16, call spillway.Call, send func(context.Context) error) error {
	return d.client.do(ctx, d.client.policies(slot), call, func(ctx context.Context) error {
		err := send(ctx)
		if _, ok := err.(*partly); ok || success(err) { //nolint:errorlint // judge returns it so
			return err
		}
		return &partly{error: err}
	})
}
