// Package board is a board of quota/fleet on a server of Redis (5 and later) or Valkey: one server, one
// with Sentinel, or a cluster. A domain uses three keys of one slot.
//
// A round trip is one EVALSHA, for all customers of a task. The server stores reports and
// levels, elects a leader, and stamps reports with its own clock. It computes nothing.
// What it stores may be lost at any time: the tasks bring the epoch back, and the levels
// are made again from the next reports. Nothing needs persistence or a replica.
//
// The user of an ACL needs these rights:
//
//	~spillway:* +evalsha +eval +time +hset +hget +hmget +hgetall +hdel +pexpire
package board

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Config configures a [Board].
type Config struct {
	// Domain separates services that use one server: all tasks of a service have the
	// same, and the quotas of different domains are different. It must be 1 to 200 bytes
	// without braces.
	Domain string
}

// A Board implements [fleet.Board]. It is safe for concurrent use; make one with [New].
type Board struct {
	client redis.Scripter
	keys   []string // reports, leader, levels
}

// New returns a Board that uses a client, or an error that names the field of c that is
// out of range. [Connect] makes a client with suitable limits.
func New(client redis.Scripter, c Config) (*Board, error) {
	if c.Domain == "" || len(c.Domain) > 200 || strings.ContainsAny(c.Domain, "{}") {
		return nil, fmt.Errorf("board: %w", &spillway.FieldError{Path: "Domain", Value: c.Domain, Allowed: "1 to 200 bytes without braces"})
	}
	prefix := "spillway:{" + c.Domain + "}:"
	return &Board{client: client, keys: []string{prefix + "reports", prefix + "leader", prefix + "levels"}}, nil
}

// Connect returns a client for boards. It sets what is zero in o: at most 2 connections, a
// second to connect and to answer, deadlines of contexts, and no retries, since the next
// round trip does the same. A connection whose server sends an answer that is larger than any of Redis here, or
// nested deeper, is closed before the client allocates memory for it. Addresses, TLS, the user and its password, Sentinel and
// cluster come from o. The caller closes the client.
func Connect(o redis.UniversalOptions) redis.UniversalClient {
	if o.PoolSize == 0 {
		o.PoolSize = 2
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = -1
	}
	if o.DialerRetries == 0 {
		o.DialerRetries = 1
	}
	for _, timeout := range []*time.Duration{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout} {
		if *timeout == 0 {
			*timeout = time.Second
		}
	}
	o.ContextTimeoutEnabled = true
	o.Dialer = boundedDialer(&o)
	return redis.NewUniversalClient(&o)
}

// Sync implements [fleet.Board].
func (b *Board) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	reply, err := syncScript.Run(ctx, b.client, b.keys,
		s.Task, s.Report, s.Epoch, version(s.Has), s.Lease.Microseconds(), s.Keep.Milliseconds()).Slice()
	if err != nil {
		b.lookAgain(ctx)
		return fleet.Heard{}, fmt.Errorf("board: %w", err)
	}
	h, err := parse(reply)
	if err != nil {
		return h, fmt.Errorf("board: reply to %s: %w", s.Task, err)
	}
	return h, nil
}

// lookAgain has the client of a cluster find out which node has the keys now. By itself it does
// so once a minute: after a failover the tasks would have no board until then.
func (b *Board) lookAgain(ctx context.Context) {
	if c, ok := b.client.(interface{ ReloadState(ctx context.Context) }); ok {
		c.ReloadState(ctx)
	}
}

// Publish implements [fleet.Board].
func (b *Board) Publish(ctx context.Context, p fleet.Publication) error {
	args := []any{p.Task, p.Version.Epoch, version(p.Version), p.Levels, p.Keep.Milliseconds()}
	for _, task := range p.Forget {
		args = append(args, task)
	}
	stored, err := publishScript.Run(ctx, b.client, b.keys, args...).Bool()
	switch {
	case err != nil:
		return fmt.Errorf("board: %w", err)
	case !stored:
		return fleet.ErrFenced
	}
	return nil
}

// Leave implements [fleet.Board].
func (b *Board) Leave(ctx context.Context, task string) error {
	if err := leaveScript.Run(ctx, b.client, b.keys, task).Err(); err != nil {
		return fmt.Errorf("board: %w", err)
	}
	return nil
}

// version is the text by which the scripts compare versions.
func version(v fleet.Version) string {
	return strconv.FormatUint(v.Epoch, 10) + ":" + strconv.FormatUint(v.Seq, 10)
}

var _ fleet.Board = (*Board)(nil)
