// Command spillway is the program of Spillway: it shows what overload control
// does, on the machine that it runs on.
//
//	spillway drill      overload a real backend with and without Spillway
//	spillway sim        run a whole system in virtual time
//	spillway proxy      put the same policies in front of any service
//	spillway tune       move the ingress limits of a MongoDB server
//	spillway check      say whether a configuration of the proxy is good
//	spillway explain    say what the proxy would do with a request
//	spillway import     make such a configuration of others
//	spillway schema     print the JSON schema of such configurations
//	spillway version    print the version
//
// Exit status: 0 if all is well, 1 if a drill found a promise broken, a simulation did
// not come out as expected, a check an endpoint that cannot be reached or a strict import
// something to leave out, 2 for wrong usage or a wrong configuration, 3 if the machine
// is at fault, 130 if interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/drill"
)

// The exit statuses.
const (
	exitOK          = 0
	exitBroken      = 1
	exitUsage       = 2
	exitEnvironment = 3
	exitInterrupted = 130
)

// cli is the command line.
type cli struct {
	Drill   drillCommand   `cmd:"" help:"Overload a real backend on this machine, with and without Spillway, and show the difference."`
	Sim     simCommand     `cmd:"" help:"Run a whole system in virtual time, on the policies that run in production."`
	Proxy   proxyCommand   `cmd:"" help:"Put the policies in front of a service in any language."`
	Tune    tuneCommand    `cmd:"" help:"Move the ingress limits of a MongoDB server as its load changes, and restore them at the end."`
	Check   checkCommand   `cmd:"" help:"Say whether a configuration of the proxy is good."`
	Explain explainCommand `cmd:"" help:"Say what the proxy would do with a request, and why."`
	Import  importCommand  `cmd:"" help:"Make a configuration of the proxy of one of gRPC, Envoy or AWS."`
	Schema  struct{}       `cmd:"" help:"Print the JSON schema of configurations of the proxy."`
	Version struct{}       `cmd:"" help:"Print the version."`
	Backend backendCommand `cmd:"" hidden:"" help:"Be the backend of a drill."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second one ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int { //nolint:funlen // one line a command
	var c cli
	parser, err := kong.New(&c,
		kong.Name("spillway"),
		kong.Description("Overload control: keeps services standing when more work arrives than they can do."),
		kong.Writers(stdout, stderr))
	if err != nil {
		return fail(stderr, err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return fail(stderr, usage{err})
	}
	switch parsed.Command() {
	case "version":
		fmt.Fprintln(stdout, version())
		return exitOK
	case "schema":
		fmt.Fprint(stdout, config.Schema)
		return exitOK
	case drill.BackendCommand:
		if err := drill.Backend(c.Backend).Serve(os.Stdin, stdout); err != nil {
			return fail(stderr, err)
		}
		return exitOK
	}
	command := c.Drill.run
	if strings.HasPrefix(parsed.Command(), "import") {
		command = func(_ context.Context, stdout, stderr io.Writer) (int, error) {
			return c.Import.run(parsed.Command(), stdout, stderr)
		}
	}
	if strings.HasPrefix(parsed.Command(), "sim") {
		command = func(ctx context.Context, stdout, stderr io.Writer) (int, error) {
			return c.Sim.run(ctx, parsed.Command(), stdout, stderr)
		}
	}
	switch parsed.Command() {
	case "proxy":
		command = func(ctx context.Context, _, stderr io.Writer) (int, error) { return exitOK, c.Proxy.run(ctx, stderr) }
	case "tune":
		command = func(ctx context.Context, _, stderr io.Writer) (int, error) { return c.Tune.run(ctx, stderr) }
	case "explain <file>", "explain <file> <url>":
		command = func(_ context.Context, stdout, _ io.Writer) (int, error) { return c.Explain.run(stdout) }
	case "check <file>":
		command = func(ctx context.Context, stdout, _ io.Writer) (int, error) { return c.Check.run(ctx, stdout) }
	}
	status, err := command(ctx, stdout, stderr)
	if err != nil {
		return fail(stderr, err)
	}
	return status
}

// backendCommand has the flags of the hidden command that is the backend.
type backendCommand drill.Backend

// usage marks an error as the user's.
type usage struct{ error }

// fail prints the one error there is, and returns the status to exit with.
func fail(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "spillway: %v\n", err)
	if _, ok := errors.AsType[usage](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*drill.UsageError](err); ok {
		return exitUsage
	}
	return exitEnvironment
}

// version says what this program was built from.
func version() string {
	v := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("spillway %s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
