package tasks

import (
	"database/sql"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the driver

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillredis"
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
