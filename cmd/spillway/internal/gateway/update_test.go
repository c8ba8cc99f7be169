package gateway

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestUpdateAfterABadAccessLog: an access log that cannot be opened rejects the configuration and leaves
// nothing locked. The next configuration is applied.
func TestUpdateAfterABadAccessLog(t *testing.T) {
	p, err := Start(t.Context(), config.ForUpstream("127.0.0.1:0", "127.0.0.1:1"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	bad := config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")
	bad.Log.Access = &config.Access{File: filepath.Join(t.TempDir(), "missing", "access.log")}
	if err := p.Update(bad); err == nil {
		t.Error("an access log in a directory that does not exist is no error")
	}
	updated := make(chan error, 1)
	go func() { updated <- p.Update(config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")) }()
	select {
	case err := <-updated:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the next update hangs")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestUpdateIsWholeOrNothing: a log rate that no limiter allows is an error of the configuration, and not one
// that is met after all else was put in place.
func TestUpdateIsWholeOrNothing(t *testing.T) {
	p, err := Start(t.Context(), config.ForUpstream("127.0.0.1:0", "127.0.0.1:1"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	bad := config.ForUpstream("127.0.0.1:0", "127.0.0.1:2")
	bad.Log.Rejections = 1e-7
	if err := p.Update(bad); err == nil {
		t.Error("a line in four months is no error")
	}
	if got := p.Stats(time.Now()).Clusters["upstream"].Endpoints[0].Address; got != "127.0.0.1:1" {
		t.Errorf("requests go to %s after an update that failed", got)
	}
}
