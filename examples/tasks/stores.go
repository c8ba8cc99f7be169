package tasks

import (
	"database/sql"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillredis"
	"github.com/seed90641741/spillway/spillrueidis"
	"github.com/seed90641741/spillway/spillsql"
)

func beforeSQL(dsn string) (*sql.DB, error) {
	return sql.Open("pgx", dsn)
}

// A database: a limit on connections with a queue by criticality, throttling and retries.
func afterSQL(dsn string) (*sql.DB, error) {
	return spillsql.Open("pgx", dsn, spillsql.Config{MaxConns: 20})
}

func beforeRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}

// A cache: a limit on commands in flight, throttling and retries.
func afterRedis(addr string) (*redis.Client, error) {
	return spillredis.NewClient(&redis.Options{Addr: addr}, egress.Config{MaxInFlight: 100})
}

func beforeRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

// The same with the client rueidis.
func afterRueidis(addr string) (rueidis.Client, error) {
	return spillrueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}, egress.Config{MaxInFlight: 100})
}
