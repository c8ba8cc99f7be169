package main

import "testing"

// TestList: each scenario has a line that says what it is about.
func TestList(t *testing.T) {
	if got, want := output(t, "-list", "-scenario", "S4"), "S4 100 long polls            100 clients poll for 10 s each, with quick calls (no rejection is needed)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, sc := range suite() {
		if sc.About == "" {
			t.Errorf("%s says nothing of itself", sc.Name)
		}
	}
}
