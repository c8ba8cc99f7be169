package attempts

import (
	"testing"
	"time"
)

// The first and the last value of each range are allowed, and the values next to them are not.
func TestConfigAtItsBounds(t *testing.T) {
	for _, c := range []Config{
		{Window: 100 * time.Millisecond}, {Window: time.Hour}, {FirstAttempts: parts}, {FirstAttempts: 1e6},
		{FirstAttempts: 100, MinRequests: 100},
	} {
		must(t, c)
	}
	for _, c := range []Config{{Window: 100*time.Millisecond - 1}, {Window: time.Hour + 1}, {FirstAttempts: 1e6 + 1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

// Without a share there is no advice, and without a request neither.
func TestNothingToGoBy(t *testing.T) {
	now := time.Unix(1e9, 0)
	h := must(t, Config{MinRequests: -1})
	if h.DontRetry(now) {
		t.Error("no request is enough")
	}
	if h.Observe(now, 2); !h.DontRetry(now) {
		t.Error("one retry is not")
	}
}
