// Command spillway is the program of Spillway: it shows what overload control
// does, on the machine that it runs on.
//
//	spillway drill      overload a real backend with and without Spillway
//	spillway sim        run a whole system in virtual time
//	spillway proxy      put the same policies in front of any service
//	spillway top        show many processes on one page
//	spillway mode       change the mode of a running proxy, in an incident
//	spillway token      make the token that such a change needs
//	spillway quota      hold the customers of a service to one quota over all Envoys
//	spillway tune       move the ingress limits of a MongoDB server
//	spillway check      say whether a configuration of the proxy is good
//	spillway explain    say what the proxy would do with a request
//	spillway import     make such a configuration of others
//	spillway schema     print the JSON schema of such configurations
//	spillway version    print the version
//	spillway completion print what switches completion on in a shell
//
// Every flag but --help and --version can also be given by the environment variable that its help names.
//
// Exit status: 0 if all is well, 1 if a drill found a promise broken, a simulation did
// not come out as expected, a check an endpoint that cannot be reached or a strict import
// something to leave out, 2 for wrong usage or a wrong configuration, 3 if the machine
// is at fault, 130 if interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/seed90641741/spillway/cmd/spillway/internal/completion"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/operator"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
)

// The exit statuses.
const (
	exitOK          = 0
	exitBroken      = 1
	exitUsage       = 2
	exitEnvironment = 3
	exitInterrupted = 130
)

// cli is the command line. The parser calls Run of a command, and adds what Help returns to its help.
type cli struct {
	Version kong.VersionFlag `env:"-" help:"Print the version."`

	Drill      drillCommand          `cmd:"" help:"Overload a real backend on this machine, with and without Spillway, and show the difference."`
	Sim        simCommand            `cmd:"" help:"Run a whole system in virtual time, on the policies that run in production."`
	Proxy      proxyCommand          `cmd:"" help:"Put the policies in front of a service in any language."`
	Top        topCommand            `cmd:"" help:"Show many proxies and other processes on one page: is it overloaded, who is rejected, why, and what to do."`
	Mode       operator.ModeCommand  `cmd:"" help:"Show or change the mode of a running proxy: observe has all requests pass."`
	Token      operator.TokenCommand `cmd:"" help:"Make the token file that changes of a running proxy need."`
	Quota      quotaCommand          `cmd:"" help:"Serve rate limits to Envoys: one quota per customer over all of them."`
	Tune       tuneCommand           `cmd:"" help:"Adjust the ingress limits of a MongoDB server to its load, and restore them at the end."`
	Check      checkCommand          `cmd:"" help:"Check a configuration of the proxy."`
	Explain    explainCommand        `cmd:"" help:"Show what the proxy would do with a request, and why."`
	Import     importCommand         `cmd:"" help:"Make a configuration of the proxy from one of gRPC, Envoy or MongoDB."`
	Schema     printed               `cmd:"" help:"Print the JSON schema of configurations of the proxy."`
	VersionOf  printed               `cmd:"" name:"version" help:"Print the version."`
	Completion completion.Command    `cmd:"" help:"Print the script that switches completion on in bash, zsh or fish."`
	Backend    backendCommand        `cmd:"" hidden:"" help:"Be the backend of a drill."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second one ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// streams is where a command writes. The parser hands it to the Run of each command.
type streams struct{ stdout, stderr io.Writer }

// run does what args say and returns the status to exit with.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := cli{
		Schema: printed{config.Schema}, Quota: quotaCommand{Schema: printed{config.QuotaSchema}}, Sim: simCommand{Schema: printed{scenario.Schema}},
		VersionOf: printed{version() + "\n"},
	}
	parser, err := kong.New(&c,
		kong.Name("spillway"),
		kong.Description("Overload control: keeps services standing when more work arrives than they can do. "+
			"Each flag can also be given by the environment variable that its help names."),
		kong.DefaultEnvars("SPILLWAY"),
		kong.Vars{"version": version()},
		kong.Writers(stdout, stderr),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(streams{stdout, stderr}))
	if err != nil {
		return fail(stderr, err)
	}
	if completion.Answer(parser) {
		return exitOK
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return fail(stderr, usage{fmt.Errorf("%w (see %s --help)", err, commandOf(err))})
	}
	return fail(stderr, parsed.Run())
}

// commandOf returns the command that an error of the parser is about.
func commandOf(err error) string {
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return "spillway"
}

// printed is a command that prints a text.
type printed struct{ text string }

func (p printed) Run(w streams) error {
	_, err := io.WriteString(w.stdout, p.text)
	return err
}

// backendCommand is the hidden command that is the backend.
type backendCommand struct {
	Settings string `arg:"" help:"What the drill asks for."`
}

// Run serves until the standard input ends.
func (b *backendCommand) Run(w streams) error {
	return process.ServeBackend(b.Settings, os.Stdin, w.stdout)
}

// topCommand is "spillway top".
type topCommand struct{ top.Command }

func (c *topCommand) Run(ctx context.Context, w streams) error {
	answered, interrupted, err := c.Command.Run(ctx, w.stdout)
	return cmp.Or(err, outcome(interrupted, answered))
}

// A status is an exit status that needs no words, because the command has said all.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// outcome returns the exit status of a command that has shown its result, nil if all is well.
func outcome(interrupted, passed bool) error {
	switch {
	case interrupted:
		return status(exitInterrupted)
	case !passed:
		return status(exitBroken)
	}
	return nil
}

// usage marks an error as the user's.
type usage struct{ error }

// fail prints the error, if there is one, and returns the status to exit with.
func fail(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if s, ok := errors.AsType[status](err); ok {
		return int(s)
	}
	fmt.Fprintf(stderr, "spillway: %v\n", err)
	_, ours := errors.AsType[usage](err)
	_, drills := errors.AsType[*process.UsageError](err)
	_, operators := errors.AsType[operator.UsageError](err)
	if ours || drills || operators {
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
