// Command record runs benchmarks, writes what they measured to a file in benchmarks/records, and
// writes the pages that show the newest records: docs/benchmarks.md, and the tables in README files.
//
//	record run --name NAME PACKAGE...   run, record, and write the pages
//	record pages                        write the pages
//
// Both run in the root of the repository. A test fails if the pages differ from the records.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Run   runCommand   `cmd:"" help:"Run benchmarks, record what they measured, and write the pages."`
	Pages pagesCommand `cmd:"" help:"Write the pages from the records."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	parsed := kong.Parse(new(cli), kong.Name("record"), kong.Description("Keeps benchmarks on record."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := parsed.Run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// pagesCommand has no flags.
type pagesCommand struct{}

// Run writes the pages.
func (pagesCommand) Run() error { return writePages(".") }
