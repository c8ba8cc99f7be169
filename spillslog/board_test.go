package spillslog_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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

	err   error
	epoch uint64
}

func (s *scripted) Sync(context.Context, fleet.Said) (fleet.Heard, error) {
	return fleet.Heard{Epoch: s.epoch}, s.err
}

// TestBoard: an outage has a line at its beginning and one at its end, a new leader has one, and
// nothing of the error is written.
func TestBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, err := spillslog.New(spillslog.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		inner := &scripted{epoch: 1}
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
		secret := errors.New("dial redis://admin:hunter2@10.0.0.1: refused")
		for i, row := range []struct {
			d     time.Duration
			err   error
			epoch uint64
			want  []string // of the lines, in order
		}{
			{time.Second, nil, 1, nil},
			{10 * time.Second, secret, 1, []string{`level=WARN msg="quota board does not answer" quota=mail timeout=false answered_before=true do=`}},
			{time.Second, nil, 1, []string{`level=INFO msg="quota board answers again" quota=mail after=10s`}},
			{time.Second, nil, 2, []string{`level=INFO msg="quota has another leader" quota=mail this_task=false`}},
			{10 * time.Second, context.DeadlineExceeded, 2, []string{"timeout=true"}},
			{time.Second, nil, 2, []string{"answers again"}},
			{time.Minute, context.Canceled, 2, nil}, // the process ends
		} {
			inner.epoch = row.epoch
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
