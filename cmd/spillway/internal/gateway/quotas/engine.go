// Package quotas shares the limits of customers among proxies, by way of servers of Redis or
// Valkey.
package quotas

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillredis/board"
)

// An Engine is a connection to the servers of an engine. It is safe for concurrent use; make
// one with [Open].
type Engine struct {
	client  redis.UniversalClient
	redis   policyconf.Redis
	secrets string         // text of all files: by it a change is noticed
	users   sync.WaitGroup // tasks of a [Set]
}

// Open returns an Engine of a configuration with redis, or what is wrong with the files that it
// names. It does not connect: servers that are away are no error. The caller must close it.
func Open(e *policyconf.Engine) (*Engine, error) {
	r := e.Redis
	if r == nil || len(r.Addresses) == 0 {
		return nil, &spillway.FieldError{Path: "redis.addresses", Value: "empty", Allowed: "one or more"}
	}
	o := redis.UniversalOptions{Addrs: r.Addresses, MasterName: r.Master, Username: r.Username, PoolSize: connections}
	secrets, err := keys.Client(r.TLS)
	if err != nil {
		return nil, err
	}
	o.TLSConfig = secrets.Config
	if r.PasswordFile != "" {
		password, err := os.ReadFile(r.PasswordFile)
		if err != nil {
			return nil, err
		}
		o.Password = strings.TrimRight(string(password), "\r\n")
	}
	silent.Do(func() { redis.SetLogger(nobody{}) })
	return &Engine{client: board.Connect(o), redis: *r, secrets: secrets.Text + "\x00" + o.Password}, nil
}

// silent stops the client's own log: what it says is in errors, which are counted.
var silent sync.Once

type nobody struct{}

func (nobody) Printf(context.Context, string, ...any) {}

// connections is how many an Engine has at most to each server. A task has one or two round trips
// in flight, and many tasks of one process share an Engine.
const connections = 16

// Board returns the board of a domain.
func (e *Engine) Board(domain string) (fleet.Board, error) {
	return board.New(e.client, board.Config{Domain: domain})
}

// Close closes the connections.
func (e *Engine) Close() error { return e.client.Close() }

// diagnosis returns what to do about an error of a board, which may have answered before. It is empty if
// that is not known.
func diagnosis(err error, answered bool) string {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(err.Error(), part) })
	}
	switch {
	case has("NOPERM", "can't run this command", "can't access"):
		return "the user of the ACL lacks a right; it needs ~spillway:* +evalsha +eval +time +hset +hget +hmget +hgetall +hdel +pexpire"
	case has("WRONGPASS", "invalid password", "invalid username-password"):
		return "username or password_file is wrong"
	case has("NOAUTH", "unauthenticated"):
		return "the server needs a password: give password_file, and username with an ACL"
	case has("unknown command", "non deterministic", "non-deterministic"):
		return "the server is too old or lacks scripts: Redis 5 or later, or Valkey, is needed"
	case plain:
		return "the server does not use TLS: leave out tls, or take its port for TLS"
	case has("certificate", "x509:"):
		return "the certificate of the server is not accepted: see tls.ca and tls.server_name"
	case has("OOM"):
		return "the memory of the server is full (maxmemory): give it more, or a server of its own; a quota needs a few megabytes"
	case has("READONLY"):
		return "the server is a replica: name its master, or Sentinels and master"
	case has("CLUSTERDOWN", "MOVED"):
		return "the server is part of a cluster: name several of its nodes"
	case answered && has("EOF", "connection reset", "connection refused", "i/o timeout", "deadline exceeded"):
		return "the server was stopped, hangs or restarts, or cannot be reached any more"
	case has("EOF", "connection reset"):
		return "the server closes the connection: does it need TLS?"
	case has("connection refused", "no such host", "i/o timeout", "deadline exceeded"):
		return "no server answers at this address, or only one of TLS and plain text is used at both ends"
	}
	return ""
}
