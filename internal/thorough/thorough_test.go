package thorough

import "testing"

func TestSeeds(t *testing.T) {
	for value, all := range map[string]bool{"": false, "1": !testing.Short()} {
		t.Setenv("SPILLWAY_THOROUGH", value)
		want := uint64(3)
		if all {
			want = 20
		}
		if got := Seeds(3, 20); got != want || Enabled() != all {
			t.Errorf("SPILLWAY_THOROUGH=%q: %d seeds, want %d", value, got, want)
		}
	}
}
