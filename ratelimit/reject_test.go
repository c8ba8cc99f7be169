package ratelimit

import (
	"net/netip"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// TestReject: Reject says what Reserve would, and takes nothing.
func TestReject(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	l, err := New(Config{Rate: 1, QueueDepth: 1, Exempt: Exempt{CIDRs: []netip.Prefix{netip.PrefixFrom(addr, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rejects := func(at time.Duration, from Caller, want bool) {
		t.Helper()
		if err := l.Reject(now.Add(at), from); (err != nil) != want {
			t.Errorf("Reject at %v: %v, want a rejection: %v", at, err, want)
		}
	}
	for range 5 {
		rejects(0, Caller{}, false) // a token is there, and stays
	}
	if _, err := l.Admit(now, spillway.Call{}); err != nil {
		t.Error(err)
	}
	rejects(0, Caller{}, false) // there is space in the queue
	r, err := l.Reserve(now)
	if err != nil || r.Wait != time.Second {
		t.Errorf("Reserve: %+v, %v", r, err)
	}
	rejects(0, Caller{}, true)
	rejects(0, Caller{Addr: addr}, false)
	rejects(time.Second, Caller{}, true) // the token of that time is taken
	if _, err := l.Reserve(now.Add(time.Second)); err == nil {
		t.Error("Reserve admits what Reject rejects")
	}
	if r.End(now.Add(time.Second)); !r.admitted {
		t.Error("the reservation was not admitted")
	}
	rejects(time.Second, Caller{}, false)
	rejects(2*time.Second, Caller{}, false)
	if s := l.Stats(now.Add(time.Hour)); s.RejectedTotal != 3 || s.ExemptedTotal != 0 {
		t.Errorf("%+v, want 3 rejections and no exempt caller", s)
	}
	if n := testing.AllocsPerRun(100, func() { _ = l.Reject(now, Caller{}) }); n != 0 {
		t.Errorf("Reject allocates %v times", n)
	}
}
