// Command overload compares Spillway with other libraries: it overloads the same server
// behind each of them, and behind nothing, and prints the goodput.
//
//	overload                 run, and print the tables
//	overload table FILE...   print the tables of what earlier runs wrote
//
// The clients try each call once and do not use Spillway, so that all depends on the
// front of the server. [fronts] lists the fronts, each with its defaults, [wires] how calls get
// there. README.md has the method and the results.
//
// Exit status: 0 if all is well, 2 for wrong usage, 3 if the machine is at fault,
// 130 if interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/zeromicro/go-zero/core/logx"
)

// The exit statuses.
const (
	exitOK          = 0
	exitUsage       = 2
	exitEnvironment = 3
	exitInterrupted = 130
)

// cli is the command line.
type cli struct {
	Run     runCommand     `cmd:"" default:"withargs" help:"Overload a server behind each front, and print the tables."`
	Table   tableCommand   `cmd:"" help:"Print the tables of what earlier runs wrote."`
	Backend backendCommand `cmd:"" hidden:"" help:"Be the server of a run."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second one ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	logx.Disable() // of go-zero, which logs its CPU use every minute, used or not
	var c cli
	parser, err := kong.New(&c,
		kong.Name("overload"),
		kong.Description("Overloads one server behind Spillway, behind other libraries, and behind nothing."),
		kong.Writers(stdout, stderr))
	if err != nil {
		return fail(stderr, err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return fail(stderr, usage{err})
	}
	switch parsed.Command() {
	case command:
		err = c.Backend.serve(os.Stdin, stdout)
	case "table <file>":
		err = c.Table.run(stdout)
	default:
		err = c.Run.run(ctx, stdout, stderr)
	}
	if err != nil {
		return fail(stderr, err)
	}
	return exitOK
}

// usage marks an error as the user's.
type usage struct{ error }

// fail prints err, and returns the status to exit with.
func fail(stderr io.Writer, err error) int {
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "overload: %v\n", err)
	if _, ok := errors.AsType[usage](err); ok {
		return exitUsage
	}
	return exitEnvironment
}
