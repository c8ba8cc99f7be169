// Sql is a program with a database behind Spillway. Its callers share two
// connections, the more critical ones first. Run it with
//
//	go run -tags sqlite ./examples/sql
//
// SQLite takes a minute to compile, and needs no server.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillsql"
)

func main() {
	db, err := open("file:example?mode=memory&cache=shared")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the program ends
	text, err := run(context.Background(), db)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}

// open opens a database behind the policies.
func open(dsn string) (*sql.DB, error) {
	return spillsql.Open("sqlite", dsn, spillsql.Config{MaxConns: 2})
}

func run(ctx context.Context, db *sql.DB) (string, error) {
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)"); err != nil {
		return "", err
	}
	// Writing the same row twice has the effect of writing it once.
	write := spillsql.Idempotent(ctx)
	if _, err := db.ExecContext(write, "INSERT OR REPLACE INTO orders VALUES (1, 'tea')"); err != nil {
		return "", err
	}
	// A report may wait or be rejected while users are served.
	report := spillway.WithCriticality(ctx, spillway.Sheddable)
	var item string
	err := db.QueryRowContext(report, "SELECT item FROM orders WHERE id = ?", 1).Scan(&item)
	if errors.Is(err, spillway.ErrRejected) {
		return "the database is overloaded: the report was never sent", nil
	}
	return "order 1: " + item, err
}
