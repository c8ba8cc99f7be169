package httpproxy

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestUsersAllLeaveBeforeTheEnd(t *testing.T) {
	for range 200 {
		var u users
		var inside atomic.Int64
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-begin
				for u.enter() {
					inside.Add(1)
					inside.Add(-1)
					u.leave()
				}
			})
		}
		close(begin)
		<-u.retire()
		if n := inside.Load(); n != 0 {
			t.Fatalf("%d are inside after the last has left", n)
		}
		if u.enter() {
			t.Fatal("somebody got in after the end")
		}
		all.Wait()
		<-u.retire()
	}
}
