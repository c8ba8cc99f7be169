package httpproxy

import (
	"testing"
)

func TestPeak(t *testing.T) {
	var u users
	for range 3 {
		u.enter()
	}
	u.leave()
	u.leave()
	if got := u.peak(); got != 3 || u.count() != 1 {
		t.Errorf("at most %d, now %d, want 3 and 1", got, u.count())
	}
	if got := u.peak(); got != 1 {
		t.Errorf("since then at most %d, want 1", got)
	}
	gone := u.retire()
	if u.enter() || u.count() != 1 {
		t.Errorf("%d are there after the end", u.count())
	}
	u.leave()
	<-gone
	if got := u.peak(); got != 1 && got != 0 || u.count() != 0 {
		t.Errorf("at most %d, now %d, want none", got, u.count())
	}
}
