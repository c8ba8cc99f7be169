package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/seed90641741/spillway"
)

// Arrivals are a Poisson process, the same for the same seed.
func TestSchedule(t *testing.T) {
	load := []stretch{{load: 1, length: 10 * time.Second}, {load: 3, length: 10 * time.Second}}
	calls := schedule(7, load, 1000)
	if again := schedule(7, load, 1000); fmt.Sprint(again) != fmt.Sprint(calls) {
		t.Error("another schedule for the same seed")
	}
	for i, want := range []int{10_000, 30_000} {
		from := time.Duration(i) * 10 * time.Second
		if n := len(between(calls, from, from+10*time.Second)); math.Abs(float64(n-want)) > 4*math.Sqrt(float64(want)) {
			t.Errorf("%d calls in stretch %d, want about %d", n, i, want)
		}
	}
	classes := map[string]int{}
	for i := range calls {
		classes[calls[i].class.String()]++
		if i > 0 && calls[i].at < calls[i-1].at {
			t.Fatalf("call %d is sent before the one ahead of it", i)
		}
	}
	if len(classes) != 4 {
		t.Errorf("classes %v", classes)
	}
}

func TestOutcomes(t *testing.T) {
	for _, row := range []struct {
		status int
		err    error
		want   outcome
	}{
		{200, nil, good},
		{204, nil, good},
		{503, nil, rejected},
		{429, nil, rejected},
		{500, nil, failed},
		{0, fmt.Errorf("read: %w", syscall.ECONNRESET), reset},
		{0, io.EOF, reset},
		{0, context.DeadlineExceeded, lost},
		{0, errors.New("no such host"), failed},
		{0, fmt.Errorf("not sent: %w", &spillway.RejectedError{}), rejected},
	} {
		if got := outcomeOf(row.status, row.err); got != row.want {
			t.Errorf("status %d, error %v: outcome %d, want %d", row.status, row.err, got, row.want)
		}
	}
}

// A server that rejects gives details; a channel without a connection does not.
func TestOutcomesOfGRPC(t *testing.T) {
	busy, err := status.New(codes.Unavailable, "overloaded").WithDetails(new(emptypb.Empty))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		err  error
		want outcome
	}{
		{nil, good},
		{busy.Err(), rejected},
		{status.Error(codes.ResourceExhausted, "rejected"), rejected},
		{status.Error(codes.Unavailable, "connection closed"), reset},
		{status.Error(codes.DeadlineExceeded, "too late"), lost},
		{status.Error(codes.Canceled, "left"), lost},
		{status.Error(codes.Internal, "broken"), failed},
	} {
		if got := outcomeOfGRPC(row.err); got != row.want {
			t.Errorf("%v: outcome %d, want %d", row.err, got, row.want)
		}
	}
}

// each sends a call every 10 ms and lets outcomeAt choose its outcome.
func each(length time.Duration, outcomeAt func(time.Duration) outcome) (calls []call) {
	for at := time.Duration(0); at < length; at += 10 * time.Millisecond {
		calls = append(calls, call{at: at, sent: at + time.Millisecond, done: at + 5*time.Millisecond, outcome: outcomeAt(at)})
	}
	return calls
}

func TestSummary(t *testing.T) {
	x := trial{capacity: 100, load: []stretch{
		{load: 2, length: 4 * time.Second, settle: time.Second}, {load: 0.5, length: 2 * time.Second},
	}}
	calls := each(6*time.Second, func(at time.Duration) outcome {
		switch {
		case at < 2*time.Second:
			return lost
		case at < 3*time.Second, at >= 4*time.Second+250*time.Millisecond:
			return good
		}
		return rejected
	})
	// Between 3 s and 4 s nothing is good: the first stretch ends unprotected.
	got := x.summarize(calls, nil)
	first, second := got.steps[0], got.steps[1]
	if first.Offered != 300 || first.Good != 100 || first.Lost != 100 || first.Rejected != 100 || math.Abs(first.GoodputRatio-1./3) > 1e-9 {
		t.Errorf("%+v", first)
	}
	if first.ReadyS != nil || first.P50MS == nil || *first.P50MS != 5 || first.P99MS != nil {
		t.Errorf("ready %v, p50 %v, p99 %v", first.ReadyS, first.P50MS, first.P99MS)
	}
	if second.ReadyS == nil || *second.ReadyS != 0.25 {
		t.Errorf("recovered after %v, want 0.25 s", second.ReadyS)
	}
	if got.latenessP99MS != 1 {
		t.Errorf("lateness %v ms", got.latenessP99MS)
	}
}

// The reaction is where the last stretch of good seconds begins.
func TestReaction(t *testing.T) {
	calls := each(5*time.Second, func(at time.Duration) outcome {
		if at < 1500*time.Millisecond {
			return lost
		}
		return good
	})
	got := reaction(calls, 0, 5*time.Second, 100)
	if got == nil || *got < 0.9 || *got > 1.2 { // half of the second from 1.0 s on is good
		t.Errorf("%v", got)
	}
	if got := reaction(calls, 0, time.Second, 100); got != nil {
		t.Errorf("ready after %v while all were lost", *got)
	}
}

// More calls than can be kept are rejected before anything starts.
func TestTooManyCalls(t *testing.T) {
	x := trial{capacity: 1e6, load: []stretch{{load: 10, length: time.Minute}}}
	if _, err := x.run(t.Context(), nil); err == nil {
		t.Error("no error")
	}
}
