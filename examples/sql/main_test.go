//go:build sqlite || thorough

package main

import (
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	db, err := open(filepath.Join(t.TempDir(), "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got, err := run(t.Context(), db); got != "order 1: tea" || err != nil {
		t.Error(got, err)
	}
}
