//go:build unix

package drivers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// program builds the program, in the workspace, and returns its file.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spillway")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir, build.Env = "..", append(os.Environ(), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// rate returns a parameter of a server.
func rate(t *testing.T, d *mongotest.Deployment, name string) bson.RawValue {
	t.Helper()
	doc, err := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: 1}, {Key: name, Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return doc.Lookup(name)
}

// TestTune runs "spillway tune" of the program, which is built once.
func TestTune(t *testing.T) {
	file := program(t)
	t.Run("restores limits", func(t *testing.T) { restoresLimits(t, file) })
	t.Run("is rejected", func(t *testing.T) { isRejected(t, file) })
}

// restoresLimits: the command takes over both limits of a server, and restores them when it is
// interrupted.
func restoresLimits(t *testing.T, file string) {
	t.Helper()
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone, Users: map[string]string{"ann": "secret"}})
	uri := strings.Replace(d.URI(), "mongodb://", "mongodb://ann:secret@", 1)
	const requests, connections = "ingressRequestAdmissionRatePerSec", "ingressConnectionEstablishmentRatePerSec"
	before := [2]string{rate(t, d, requests).String(), rate(t, d, connections).String()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tune := exec.CommandContext(ctx, file, "tune", "--uri", uri, "--enforce", "--latency=50ms", "--requests-start=4321", "--connections-start=321")
	var said bytes.Buffer // read after the end
	tune.Stderr = &said
	if err := tune.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tune.Wait() }()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for rate(t, d, requests).AsInt64() != 4321 || rate(t, d, connections).AsInt64() != 321 {
		select {
		case <-ticks.C:
		case err := <-ended:
			t.Fatalf("ended before it took over the limits: %v\n%s", err, said.String())
		}
	}
	if err := tune.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
	if after := [2]string{rate(t, d, requests).String(), rate(t, d, connections).String()}; after != before {
		t.Errorf("limits are %v after the end, were %v", after, before)
	}
	if strings.Contains(said.String(), "secret") {
		t.Errorf("the password is in the log: %s", said.String())
	}
}

// isRejected: what a server does not have ends the command at once, with a reason.
func isRejected(t *testing.T, file string) {
	t.Helper()
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone})
	old := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone})
	if _, err := old.Node(0).RunCommand("admin", bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"getParameter"}}, {Key: "errorCode", Value: 72}}},
	}); err != nil {
		t.Fatal(err)
	}
	const unusable = 3 // the exit status for what is wrong outside of the program
	for _, row := range []struct{ uri, target, want string }{
		{d.URI(), "--cpu=0.9", "does not report cpu"},
		{old.URI(), "--queued=1", "has no parameter"},
	} {
		out, err := exec.CommandContext(t.Context(), file, "tune", "--uri", row.uri, row.target).CombinedOutput()
		if status := fmt.Sprint(err); status != fmt.Sprint("exit status ", unusable) || !strings.Contains(string(out), row.want) {
			t.Errorf("%s: %s, want %d: %s, want %q", row.target, status, unusable, out, row.want)
		}
	}
}
