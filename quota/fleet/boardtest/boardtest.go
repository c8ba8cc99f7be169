// Package boardtest checks implementations of [fleet.Board].
package boardtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

// lease is the lease of leaders in these tests, except in the test of its end. It is so long that
// it does not end on a busy machine.
const lease = 30 * time.Second

// A Kit makes boards.
type Kit struct {
	// New returns an empty board.
	New func(t *testing.T) fleet.Board
	// Wait returns after the board's clock has advanced by d.
	Wait func(d time.Duration)
	// Lose removes everything that the board stores, like a restart of a server without its data.
	// Nil if that cannot happen.
	Lose func(b fleet.Board)
}

// Run checks the contract of [fleet.Board] in subtests.
func Run(t *testing.T, k Kit) {
	for name, test := range map[string]func(*testing.T, Kit){
		"one task leads":               oneLeads,
		"a leader that is silent":      silentLeader,
		"a leader that leaves":         leaderLeaves,
		"levels are sent once":         levelsOnce,
		"late levels are rejected":     lateLevels,
		"reports are kept as they are": reports,
		"tasks are forgotten":          forget,
		"epochs survive a loss":        loss,
		"an ended context":             endedContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}

func said(task string) fleet.Said {
	return fleet.Said{Task: task, Report: []byte(task), Lease: lease, Keep: time.Minute}
}

// sync calls b.Sync, which must not fail.
func sync(t *testing.T, b fleet.Board, s fleet.Said) fleet.Heard {
	t.Helper()
	h, err := b.Sync(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func publish(t *testing.T, b fleet.Board, task string, epoch, seq uint64, levels string) error {
	t.Helper()
	return b.Publish(t.Context(), fleet.Publication{
		Task: task, Version: fleet.Version{Epoch: epoch, Seq: seq}, Levels: []byte(levels), Keep: time.Minute,
	})
}

func oneLeads(t *testing.T, k Kit) {
	b := k.New(t)
	first := sync(t, b, said("a"))
	if !first.Leader || first.Epoch == 0 || first.Levels != nil {
		t.Fatalf("the first task heard %+v; expected to lead an epoch above zero, and no levels", first)
	}
	for range 3 {
		if h := sync(t, b, said("b")); h.Leader || h.Task != "" && h.Task != "a" || h.Epoch != first.Epoch || h.Reports != nil {
			t.Fatalf("the second task heard %+v; expected epoch %d, not to lead, no reports", h, first.Epoch)
		}
		if h := sync(t, b, said("a")); !h.Leader || h.Epoch != first.Epoch || len(h.Reports) != 2 || h.Now < first.Now {
			t.Fatalf("the leader heard %+v; expected two reports and the same epoch", h)
		}
	}
}

func silentLeader(t *testing.T, k Kit) {
	b := k.New(t)
	s := said("a")
	s.Lease = time.Second
	first := sync(t, b, s)
	k.Wait(s.Lease / 4)
	if h := sync(t, b, s); h.Now-first.Now < s.Lease && (!h.Leader || h.Epoch != first.Epoch) {
		t.Errorf("before the end of the lease the leader heard %+v", h)
	}
	k.Wait(s.Lease + s.Lease/4)
	if h := sync(t, b, said("b")); !h.Leader || h.Epoch <= first.Epoch {
		t.Errorf("after the end of the lease the other task heard %+v; expected to lead above epoch %d", h, first.Epoch)
	}
	if h := sync(t, b, said("a")); h.Leader {
		t.Error("two tasks lead")
	}
}

func leaderLeaves(t *testing.T, k Kit) {
	b := k.New(t)
	first := sync(t, b, said("a"))
	sync(t, b, said("b"))
	if err := b.Leave(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	h := sync(t, b, said("b"))
	if !h.Leader || h.Epoch <= first.Epoch || len(h.Reports) != 1 {
		t.Errorf("after the goodbye of the leader: %+v; expected to lead above epoch %d with one report", h, first.Epoch)
	}
	if err := b.Leave(t.Context(), "x"); err != nil {
		t.Errorf("a goodbye of a task that is not known: %v", err)
	}
}

func levelsOnce(t *testing.T, k Kit) {
	b := k.New(t)
	epoch := sync(t, b, said("a")).Epoch
	const levels = "levels\x00\xff\r\n"
	if err := publish(t, b, "a", epoch, 1, levels); err != nil {
		t.Fatal(err)
	}
	s := said("b")
	if h := sync(t, b, s); string(h.Levels) != levels {
		t.Fatalf("heard levels %q; expected %q", h.Levels, levels)
	}
	s.Epoch, s.Has = epoch, fleet.Version{Epoch: epoch, Seq: 1}
	if h := sync(t, b, s); h.Levels != nil {
		t.Error("the same levels were sent again")
	}
	if err := publish(t, b, "a", epoch, 1<<40, "new"); err != nil {
		t.Fatal(err)
	}
	if h := sync(t, b, s); string(h.Levels) != "new" {
		t.Errorf("heard levels %q; expected the new ones", h.Levels)
	}
}

func lateLevels(t *testing.T, k Kit) {
	b := k.New(t)
	epoch := sync(t, b, said("a")).Epoch
	s := said("b")
	s.Epoch = epoch + 6 // b has seen a higher epoch than a
	h := sync(t, b, s)
	if !h.Leader || h.Epoch <= epoch+6 {
		t.Fatalf("a task that knows a higher epoch heard %+v; expected to lead above it", h)
	}
	for _, late := range []struct {
		task  string
		epoch uint64
	}{{"a", epoch}, {"a", h.Epoch}, {"b", epoch}, {"c", h.Epoch + 1}} {
		if err := publish(t, b, late.task, late.epoch, 9, "late"); !errors.Is(err, fleet.ErrFenced) {
			t.Errorf("task %s published under epoch %d: %v; expected ErrFenced", late.task, late.epoch, err)
		}
	}
	if h := sync(t, b, said("c")); h.Levels != nil {
		t.Errorf("heard late levels %q", h.Levels)
	}
}

func reports(t *testing.T, k Kit) {
	b := k.New(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	big := bytes.Repeat(all, 400)
	for task, report := range map[string][]byte{"b \x00\xff": all, "c": {}, "d": big} {
		sync(t, b, said("a"))
		s := said(task)
		s.Report = report
		sync(t, b, s)
	}
	h := sync(t, b, said("a"))
	if len(h.Reports) != 4 {
		t.Fatalf("%d reports; expected 4", len(h.Reports))
	}
	for _, r := range h.Reports {
		expected := map[string][]byte{"a": []byte("a"), "b \x00\xff": all, "c": {}, "d": big}[r.Task]
		if !bytes.Equal(r.Report, expected) || r.At > h.Now || r.At < h.Since || h.Now-r.At > time.Minute {
			t.Errorf("task %q: a report of %d bytes at %v, now %v; expected %d bytes", r.Task, len(r.Report), r.At, h.Now, len(expected))
		}
	}
}

func forget(t *testing.T, k Kit) {
	b := k.New(t)
	epoch := sync(t, b, said("a")).Epoch
	sync(t, b, said("b"))
	err := b.Publish(t.Context(), fleet.Publication{
		Task: "a", Version: fleet.Version{Epoch: epoch, Seq: 1}, Levels: []byte("x"), Keep: time.Minute, Forget: []string{"b", "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := sync(t, b, said("a"))
	if !slices.ContainsFunc(h.Reports, func(r fleet.Stamped) bool { return r.Task == "a" }) || len(h.Reports) != 1 {
		t.Errorf("reports %+v; expected that of a only", h.Reports)
	}
}

func loss(t *testing.T, k Kit) {
	if k.Lose == nil {
		t.Skip("this board cannot lose what it stores")
	}
	b := k.New(t)
	epoch := sync(t, b, said("a")).Epoch
	if err := publish(t, b, "a", epoch, 1, "levels"); err != nil {
		t.Fatal(err)
	}
	k.Lose(b)
	if err := publish(t, b, "a", epoch, 2, "levels"); !errors.Is(err, fleet.ErrFenced) {
		t.Errorf("the leader of before published: %v; expected ErrFenced", err)
	}
	s := said("b")
	s.Epoch = epoch
	if h := sync(t, b, s); !h.Leader || h.Epoch <= epoch || h.Levels != nil || len(h.Reports) != 1 {
		t.Errorf("after the loss: %+v; expected to lead above epoch %d, without levels, with one report", h, epoch)
	}
}

func endedContext(t *testing.T, k Kit) {
	b := k.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Sync(ctx, said("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("Sync under an ended context: %v", err)
	}
	if err := b.Publish(ctx, fleet.Publication{Task: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Publish under an ended context: %v", err)
	}
}
