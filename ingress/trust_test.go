package ingress

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// Who changes a map that a Server was configured with, to Update with it, changes
// nothing before.
func TestTrustIsCopied(t *testing.T) {
	highest := map[string]spillway.Criticality{"web": spillway.CriticalPlus}
	s := must(t, Config{Trust: Trust{Boundary: Internal, MaxByIdentity: highest}})
	highest["web"] = spillway.Sheddable
	if got := s.Trust().MaxByIdentity["web"]; got != spillway.CriticalPlus {
		t.Errorf("the Server trusts web up to %v", got)
	}
}

func TestJudge(t *testing.T) {
	const (
		s, sp, c, cp = spillway.Sheddable, spillway.SheddablePlus, spillway.Critical, spillway.CriticalPlus
	)
	now := time.Unix(1e9, 0)
	edge := Trust{MaxTimeout: time.Minute}
	inside := Trust{
		Boundary: Internal, DefaultMax: c,
		MaxByIdentity: map[string]spillway.Criticality{"web": cp, "batch": sp},
	}
	for i, row := range []struct {
		trust  Trust
		known  spillway.Criticality
		claims Claims
		want   spillway.Criticality
	}{
		{edge, c, Claims{}, c},
		{edge, c, Claims{Criticality: cp}, c}, // not labelled
		{edge, c, Claims{Criticality: cp, Labelled: true}, c},
		{edge, c, Claims{Criticality: s, Labelled: true}, s},
		{edge, s, Claims{Criticality: c, Labelled: true}, s},
		{edge, cp, Claims{}, cp}, // what the server knows of its route
		{edge, c, Claims{Criticality: 99, Labelled: true}, c},
		{edge, 99, Claims{}, c},
		{edge, c, Claims{Criticality: cp, Labelled: true, Identity: "web"}, c},
		{inside, c, Claims{Criticality: cp, Labelled: true, Identity: "web"}, cp},
		{inside, c, Claims{Criticality: cp, Labelled: true, Identity: "batch"}, sp},
		{inside, c, Claims{Identity: "batch"}, sp},
		{inside, c, Claims{Criticality: cp, Labelled: true, Identity: "?"}, c},
		{inside, s, Claims{Criticality: c, Labelled: true, Identity: "web"}, c},
		{inside, s, Claims{Identity: "web"}, s},
	} {
		call := row.trust.Judge(now, spillway.Call{Criticality: row.known}, row.claims)
		if call.Criticality != row.want {
			t.Errorf("row %d: %v, want %v", i, call.Criticality, row.want)
		}
	}
}

func TestJudgeDeadlineAndAttempt(t *testing.T) {
	now := time.Unix(1e9, 0)
	edge := Trust{MaxTimeout: time.Minute}
	for i, row := range []struct {
		own, timeout time.Duration // 0: none
		want         time.Duration
	}{
		{0, 0, 0},
		{0, time.Second, time.Second},
		{0, -time.Second, 0},
		{0, math.MaxInt64, time.Minute},
		{time.Second, time.Minute, time.Second},
		{time.Second, time.Millisecond, time.Millisecond},
	} {
		var call spillway.Call
		if row.own != 0 {
			call.Deadline = now.Add(row.own)
		}
		call = edge.Judge(now, call, Claims{Timeout: row.timeout})
		got := time.Duration(0)
		if !call.Deadline.IsZero() {
			got = call.Deadline.Sub(now)
		}
		if got != row.want {
			t.Errorf("row %d: %v, want %v", i, got, row.want)
		}
	}
	for claim, want := range map[int]int16{-5: 0, 0: 0, 3: 3, math.MaxInt: math.MaxInt16} {
		if got := edge.Judge(now, spillway.Call{}, Claims{Attempt: claim}).Attempt; got != want {
			t.Errorf("attempt %d: %d, want %d", claim, got, want)
		}
	}
}

// Level and progress from outside are dropped at an edge, and believed inside.
func TestJudgeLevel(t *testing.T) {
	for _, row := range []struct {
		boundary Boundary
		own      spillway.Call
		said     Claims
		level    spillway.Level
		progress spillway.Progress
	}{
		{Edge, spillway.Call{}, Claims{Level: 128, Progress: 9, TraceLevel: 7}, 0, 0},
		{Edge, spillway.Call{Level: 5, Progress: 1}, Claims{Level: 128, Progress: 9}, 5, 1},
		{Internal, spillway.Call{}, Claims{Level: 128, Progress: 9, TraceLevel: 7}, 128, 9},
		{Internal, spillway.Call{Level: 5, Progress: 9}, Claims{Level: 3, Progress: 1}, 3, 9},
		{Internal, spillway.Call{Level: 5}, Claims{Level: 129, TraceLevel: 7}, 5, 0},
		{Internal, spillway.Call{}, Claims{Level: 129, TraceLevel: 7}, 7, 0},
		{Internal, spillway.Call{}, Claims{TraceLevel: 200}, 0, 0},
	} {
		trust := Trust{Boundary: row.boundary}
		if got := trust.Judge(time.Unix(1e9, 0), row.own, row.said); got.Level != row.level || got.Progress != row.progress {
			t.Errorf("%v: %+v with %+v: level %d, progress %d, want %d and %d", row.boundary, row.own, row.said, got.Level, got.Progress, row.level, row.progress)
		}
	}
}

// What a rejected client learns depends on the boundary, unless it is configured.
func TestDiscloses(t *testing.T) {
	for trust, want := range map[struct {
		boundary Boundary
		reasons  Reasons
	}]string{
		{Edge, ReasonsByBoundary}: "coarse", {Internal, ReasonsByBoundary}: "full",
		{Edge, ReasonsFull}: "full", {Internal, ReasonsNone}: "none",
	} {
		if got := (&Trust{Boundary: trust.boundary, Reasons: trust.reasons}).Discloses().String(); got != want {
			t.Errorf("%+v discloses %s, want %s", trust, got, want)
		}
	}
	if got := (ReasonsFull + 1).String(); got != "Reasons(4)" {
		t.Errorf("the value after the last one is %q", got)
	}
}

// Whatever it claims, a request from outside is never more critical than the
// server knows it to be, and its deadline is never later than the server's own.
func FuzzJudge(f *testing.F) {
	f.Add(int8(0), int8(1), true, 0, int64(1), "web")
	f.Add(int8(-2), int8(99), true, math.MaxInt, int64(math.MaxInt64), "")
	f.Fuzz(func(t *testing.T, known, claim int8, labelled bool, attempt int, timeout int64, identity string) {
		now := time.Unix(1e9, 0)
		own := spillway.Call{Criticality: spillway.Criticality(known), Deadline: now.Add(time.Second), Customer: "c"}
		claims := Claims{Criticality: spillway.Criticality(claim), Labelled: labelled, Attempt: attempt, Timeout: time.Duration(timeout), Identity: identity,
			Level: spillway.Level(claim), Progress: spillway.Progress(attempt), TraceLevel: spillway.Level(known)}
		for _, trust := range []Trust{{}, {Boundary: Internal, DefaultMax: spillway.SheddablePlus}} {
			call := trust.Judge(now, own, claims)
			highest := max(own.Criticality, spillway.Critical)
			if trust.Boundary == Internal {
				highest = trust.DefaultMax
			}
			if !call.Criticality.Valid() || own.Criticality.Valid() && call.Criticality > highest {
				t.Errorf("%+v made it %v", claims, call.Criticality)
			}
			if call.Level != 0 && !call.Level.Valid() || trust.Boundary == Edge && (call.Level != 0 || call.Progress != 0) {
				t.Errorf("%+v made it level %d, progress %d", claims, call.Level, call.Progress)
			}
			if call.Deadline.After(own.Deadline) || !call.Deadline.After(now) || call.Attempt < 0 || call.Customer != "c" {
				t.Errorf("%+v made it %+v", claims, call)
			}
		}
	})
}
