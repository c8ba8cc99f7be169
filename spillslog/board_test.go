package spillslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillslog"
)

// scripted is a board that answers with an error or an epoch.
type scripted struct {
	fleet.Board

	err  error
	task string
}

func (s *scripted) Sync(context.Context, fleet.Said) (fleet.Heard, error) {
	return fleet.Heard{Task: s.task}, s.err
}

// redisError is an answer of a server, as the client of Redis returns it.
type redisError string

func (e redisError) Error() string { return string(e) }

func (redisError) RedisError() {}

// TestBoard: an outage has a line at its beginning and one at its end, a new leader has one, and
// the error is written without what may be a password.
func TestBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, err := spillslog.New(spillslog.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		inner := &scripted{}
		b := log.Board(inner, "mail")
		during := func(d time.Duration, err error) string {
			out.Reset()
			inner.err = err
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				if _, got := b.Sync(t.Context(), fleet.Said{}); !errors.Is(got, err) {
					t.Fatalf("got the error %v", got)
				}
			}
			log.Flush()
			return out.String()
		}
		rejected := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6379}, Err: errors.New("connection refused")}
		secret := errors.New("dial redis://admin:hunter2@10.0.0.1: rejected")
		for i, row := range []struct {
			d    time.Duration
			err  error
			task string
			want []string // of the lines, in order
		}{
			{time.Second, nil, "a", nil},
			{10 * time.Second, secret, "a", []string{`level=WARN msg="quota board does not answer" quota=mail error=other timeout=false answered_before=true do=`}},
			{time.Second, nil, "a", []string{`level=INFO msg="quota board answers again" quota=mail after=10s`}},
			{time.Second, nil, "b", []string{`level=INFO msg="a leader of the quota was elected" quota=mail this_task=false`}},
			{10 * time.Second, context.DeadlineExceeded, "b", []string{`error="no answer in time" timeout=true`}},
			{time.Second, nil, "b", []string{"answers again"}},
			{9 * time.Second, fmt.Errorf("board: %w", rejected), "b", []string{`error="dial tcp 10.0.0.1:6379: connection refused" timeout=false`}},
			{time.Second, nil, "b", []string{"answers again"}},
			{9 * time.Second, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, "b", []string{`error="read tcp: i/o timeout" timeout=true`}},
			{time.Second, nil, "b", []string{"answers again"}},
			{9 * time.Second, redisError("WRONGPASS hunter2 is wrong"), "b", []string{`error=WRONGPASS timeout=false`}},
			{time.Second, nil, "b", []string{"answers again"}},
			{time.Minute, context.Canceled, "b", nil}, // the process ends
		} {
			inner.task = row.task
			got := during(row.d, row.err)
			if strings.Count(got, "\n") != len(row.want) || strings.Contains(got, "hunter2") {
				t.Errorf("row %d: %s", i, got)
			}
			for _, want := range row.want {
				if !strings.Contains(got, want) {
					t.Errorf("row %d: %s\nwant %s", i, got, want)
				}
			}
		}
	})
}

// TestBoardWithoutLines: a negative interval writes nothing.
func TestBoardWithoutLines(t *testing.T) {
	var out bytes.Buffer
	log, err := spillslog.New(spillslog.Config{Logger: slog.New(slog.NewTextHandler(&out, nil)), Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = log.Board(&scripted{err: errors.New("away")}, "mail").Sync(t.Context(), fleet.Said{})
	if log.Flush(); out.Len() > 0 {
		t.Errorf("%s", out.String())
	}
}
