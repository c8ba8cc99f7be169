package tasks

import (
	"database/sql"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	_ "modernc.org/sqlite" // the driver

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillredis"
	"github.com/seed90641741/spillway/spillrueidis"
	"github.com/seed90641741/spillway/spillsql"
)

func beforeSQL(dsn string) (*sql.DB, error) {
	return sql.Open("sqlite", dsn)
}

// A database: a limit on connections with a queue by criticality, throttling and retries.
func afterSQL(dsn string) (*sql.DB, error) {
	return spillsql.Open("sqlite", dsn, spillsql.Config{MaxConns: 20})
}

func beforeRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}

// A cache: a limit on commands in flight, throttling and retries.
func afterRedis(addr string) (*redis.Client, error) {
	return spillredis.NewClient(&redis.Options{Addr: addr}, egress.Config{MaxRequests: 100})
}

func beforeRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

// The same with the client rueidis.
func afterRueidis(addr string) (rueidis.Client, error) {
	return spillrueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}, egress.Config{MaxRequests: 100})
}
