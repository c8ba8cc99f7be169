package docs

import (
	"context"
	"database/sql"
	"errors"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillaws"
	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillredis"
	"github.com/seed90641741/spillway/spillrueidis"
	"github.com/seed90641741/spillway/spillsql"
)

var errTryLater = errors.New("try later")

func mongodb(uri string) (*mongo.Client, error) {
	retrier, err := spillmongo.New(options.Client().ApplyURI(uri), spillmongo.Config{})
	if err != nil {
		return nil, err
	}
	return mongo.Connect(retrier.ClientOptions())
}

func aws(ctx context.Context) (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := spillaws.Install(&cfg, spillaws.Config{}); err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg), nil
}

func database(ctx context.Context, dsn, customer string, read func(*sql.Rows)) error {
	db, err := spillsql.Open("pgx", dsn, spillsql.Config{MaxConns: 20})
	if err != nil {
		return err
	}
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
	rows, err := db.QueryContext(ctx, "SELECT id FROM orders WHERE customer = $1", customer)
	if errors.Is(err, spillway.ErrRejected) {
		return errTryLater // rejected in this process
	}
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // only read
	read(rows)
	return rows.Err()
}

func cache(ctx context.Context, read func(string)) error {
	client, err := spillredis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}, egress.Config{MaxInFlight: 100})
	if err != nil {
		return err
	}
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
	value, err := client.Get(ctx, "key").Result() // redis.Nil counts as a success
	if errors.Is(err, spillway.ErrRejected) {
		return errTryLater // rejected in this process
	}
	read(value)
	return errors.Join(err, client.Close())
}

func rueidisCache(ctx context.Context, read func(string)) error {
	client, err := spillrueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}, egress.Config{MaxInFlight: 100})
	if err != nil {
		return err
	}
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
	value, err := client.Do(ctx, client.B().Get().Key("key").Build()).ToString()
	if errors.Is(err, spillway.ErrRejected) {
		return errTryLater // rejected in this process
	}
	read(value)
	client.Close()
	return err
}
