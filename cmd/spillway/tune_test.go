package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// A lockedBuffer is a buffer that may be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
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

// TestTune: the command takes over both limits of a server, and restores them when it is
// interrupted.
func TestTune(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone, Users: map[string]string{"ann": "secret"}})
	uri := strings.Replace(d.URI(), "mongodb://", "mongodb://ann:secret@", 1)
	const requests, connections = "ingressRequestAdmissionRatePerSec", "ingressConnectionEstablishmentRatePerSec"
	before := [2]string{rate(t, d, requests).String(), rate(t, d, connections).String()}
	var stdout, stderr lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"tune", "--uri", uri, "--enforce", "--latency=50ms", "--requests-start=4321", "--connections-start=321"}, &stdout, &stderr)
	}()
	deadline := time.After(20 * time.Second)
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for rate(t, d, requests).AsInt64() != 4321 || rate(t, d, connections).AsInt64() != 321 {
		select {
		case <-ticks.C:
		case status := <-done:
			t.Fatalf("ended with %d: %s", status, stderr.String())
		case <-deadline:
			t.Fatalf("the limits are not taken over: %s", stderr.String())
		}
	}
	stop()
	if status := <-done; status != exitOK {
		t.Errorf("status %d: %s", status, stderr.String())
	}
	if after := [2]string{rate(t, d, requests).String(), rate(t, d, connections).String()}; after != before {
		t.Errorf("limits are %v after the end, were %v", after, before)
	}
	if strings.Contains(stderr.String(), "secret") {
		t.Errorf("the password is in the log: %s", stderr.String())
	}
}

// TestTuneIsRejected: what cannot work ends at once, with a reason.
func TestTuneIsRejected(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone})
	old := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone})
	if _, err := old.Node(0).RunCommand("admin", bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"getParameter"}}, {Key: "errorCode", Value: 72}}},
	}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--uri", d.URI()}, exitUsage, "no target"},
		{[]string{"--uri", "http://x", "--queued=1"}, exitUsage, "scheme"},
		{[]string{"--uri", "mongodb://a,b", "--queued=1"}, exitUsage, "direct"},
		{[]string{"--uri", "mongodb://127.0.0.1:1", "--queued=1", "--timeout=200ms"}, exitEnvironment, "server selection"},
		{[]string{"--uri", d.URI(), "--cpu=0.9"}, exitEnvironment, "does not report cpu"},
		{[]string{"--uri", d.URI(), "--queued=1", "--limits=tickets"}, exitUsage, "limits"},
		{[]string{"--uri", d.URI(), "--queued=1", "--reaction=1ms"}, exitUsage, "Reaction"},
		{[]string{"--uri", d.URI(), "--cpu=90"}, exitUsage, "--cpu is 90, must be a share from 0 to 1, such as 0.9"},
		{[]string{"--uri", d.URI(), "--memory=-0.1"}, exitUsage, "--memory is -0.1, must be a share"},
		{[]string{"--uri", d.URI(), "--tickets=NaN"}, exitUsage, "--tickets is NaN, must be a share"},
		{[]string{"--uri", old.URI(), "--queued=1"}, exitEnvironment, "has no parameter"},
	} {
		var stdout, stderr lockedBuffer
		if status := run(t.Context(), append([]string{"tune"}, row.args...), &stdout, &stderr); status != row.status || !strings.Contains(stderr.String(), row.want) {
			t.Errorf("%v: status %d, want %d: %s, want %q", row.args, status, row.status, stderr.String(), row.want)
		}
	}
}
