package resources

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestCapsFollowTheLimitOnFiles(t *testing.T) {
	for _, row := range []struct {
		files, listeners                int
		connections, requests, upstream int
		warnings                        int
	}{
		{0, 1, 10000, 10000, 1024, 0}, // not known
		{1 << 20, 1, 10000, 10000, 1024, 0},
		{256, 1, 96, 192, 48, 3},
		{256, 2, 48, 96, 48, 5},
		{100, 1, 25, 50, 12, 3},
		{3, 1, 1, 2, 1, 3},
	} {
		c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")
		for range row.listeners - 1 {
			c.Listeners = append(c.Listeners, c.Listeners[0])
		}
		d := c.Defaulted()
		var log bytes.Buffer
		LogCaps(slog.New(slog.NewTextHandler(&log, nil)), FitOpenFiles(d, row.files))
		l, x := d.Listeners[0], d.Clusters[0]
		if l.MaxConnections != row.connections || l.MaxRequests != row.requests || x.MaxConnections != row.upstream {
			t.Errorf("%d files, %d listeners: %d, %d, %d, want %+v", row.files, row.listeners, l.MaxConnections, l.MaxRequests, x.MaxConnections, row)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != row.warnings {
			t.Errorf("%d files: %d warnings, want %d", row.files, n, row.warnings)
		}
	}
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")
	c.Listeners[0].MaxConnections = -1
	d := c.Defaulted()
	if FitOpenFiles(d, 1000); d.Listeners[0].MaxConnections != 468 {
		t.Errorf("no limit becomes %d, want what the files allow", d.Listeners[0].MaxConnections)
	}
}
