//go:build !xds

package xds

import (
	"context"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/proxy"
)

// TestLeftOut: a program without xDS refuses what names a control plane, and says how
// to build one that does not.
func TestLeftOut(t *testing.T) {
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:80")
	if err := Check(c); err != nil {
		t.Errorf("without a control plane: %v", err)
	}
	c.XDS = &config.XDS{Address: "127.0.0.1:1", Node: config.Node{ID: "a"}}
	p, err := proxy.Start(context.Background(), proxy.Config{Config: c, Connect: new(Connector).Connect})
	if err == nil {
		p.Close()
	}
	for _, err := range []error{err, Check(c)} {
		if err == nil || !strings.Contains(err.Error(), "go build -tags xds") {
			t.Errorf("it is not said how to build: %v", err)
		}
	}
}
