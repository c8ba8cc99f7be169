package quotas

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillredis/board"
	"github.com/seed90641741/spillway/spillslog"
)

// TestLibraryLog: the log of a library service tells a server that hangs from one that refuses connections.
func TestLibraryLog(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // connections are established, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	const rejects = "127.0.0.1:1"
	for address, want := range map[string]string{
		hangs.Addr().String(): "timeout=true answered_before=false",
		rejects:               "connection refused\" timeout=false answered_before=false",
	} {
		var out bytes.Buffer
		log, err := spillslog.New(spillslog.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		c := board.Connect(redis.UniversalOptions{Addrs: []string{address}})
		b, err := board.New(c, board.Config{Domain: "x"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		_, _ = log.Board(b, "mail").Sync(ctx, fleet.Said{Task: "a"})
		cancel()
		c.Close()
		if log.Flush(); !strings.Contains(out.String(), want) {
			t.Errorf("%s, want %s", out.String(), want)
		}
	}
}
