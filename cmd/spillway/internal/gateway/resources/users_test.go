package resources

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestUsersAllLeaveBeforeTheEnd(t *testing.T) {
	for range 200 {
		var u Users
		var inside atomic.Int64
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-begin
				for u.Enter() {
					inside.Add(1)
					inside.Add(-1)
					u.Leave()
				}
			})
		}
		close(begin)
		<-u.Retire()
		if n := inside.Load(); n != 0 {
			t.Fatalf("%d are inside after the last has left", n)
		}
		if u.Enter() {
			t.Fatal("somebody got in after the end")
		}
		all.Wait()
		<-u.Retire()
	}
}

func TestPeak(t *testing.T) {
	var u Users
	for range 3 {
		u.Enter()
	}
	u.Leave()
	u.Leave()
	if got := u.Peak(); got != 3 || u.Count() != 1 {
		t.Errorf("at most %d, now %d, want 3 and 1", got, u.Count())
	}
	if got := u.Peak(); got != 1 {
		t.Errorf("since then at most %d, want 1", got)
	}
	gone := u.Retire()
	if u.Enter() || u.Count() != 1 {
		t.Errorf("%d are there after the end", u.Count())
	}
	u.Leave()
	<-gone
	if got := u.Peak(); got != 1 && got != 0 || u.Count() != 0 {
		t.Errorf("at most %d, now %d, want none", got, u.Count())
	}
}
