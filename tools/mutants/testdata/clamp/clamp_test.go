package clamp

import "testing"

func TestClamp(t *testing.T) {
	for n, want := range map[int]int{11: 10, -11: -10, 3: 3} {
		if got := Clamp(n); got != want {
			t.Errorf("Clamp(%d) is %d, want %d", n, got, want)
		}
	}
}

func TestHalf(t *testing.T) {
	for d, want := range map[int64]int64{1: 1e9, 4e9: 2e9} {
		if got := Half(d); got != want {
			t.Errorf("Half(%d) is %d, want %d", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if n, ok := Count("a", "", "b"); n != 2 || !ok {
		t.Errorf("Count is %d, %t, want 2, true", n, ok)
	}
	if n, ok := Count(); n != 0 || ok {
		t.Errorf("Count of nothing is %d, %t, want 0, false", n, ok)
	}
}
