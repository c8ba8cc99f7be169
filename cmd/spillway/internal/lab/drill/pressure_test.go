package drill

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStalled(t *testing.T) {
	for _, row := range []struct {
		content string
		want    time.Duration
		known   bool
	}{
		{"some avg10=15.51 avg60=26.15 avg300=17.80 total=298639652\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", 298639652 * time.Microsecond, true},
		{"full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", 0, false},
		{"some avg10=0.00 avg60=0.00 avg300=0.00 total=99999999999999999999\n", 0, false},
		{"", 0, false},
	} {
		file := filepath.Join(t.TempDir(), "cpu")
		if err := os.WriteFile(file, []byte(row.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, known := counted(file, stalledSome, time.Microsecond)
		if known != row.known || known && got != row.want {
			t.Errorf("%q: %v, %v; want %v, %v", row.content, got, known, row.want, row.known)
		}
	}
	if _, known := counted(filepath.Join(t.TempDir(), "missing"), stalledSome, time.Microsecond); known {
		t.Error("known without a file")
	}
}

func TestStolen(t *testing.T) {
	for content, want := range map[string]time.Duration{
		"cpu  7196708 2230839 1881081 5839777 25144 0 99577 12447 0 0\ncpu0 3480925 1 9 3 7 0 4 6500 0 0\n": 12447 * 10 * time.Millisecond,
		"cpu 1 2 3 4 5 6 7 8 9 10\n":  80 * time.Millisecond,
		"cpu0 1 2 3 4 5 6 7 8 9 10\n": 0,
		"cpu  1 2 3\n":                0,
		"":                            0,
	} {
		file := filepath.Join(t.TempDir(), "stat")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := counted(file, stolenTicks, 10*ms); got != want {
			t.Errorf("%q: %v, want %v", content, got, want)
		}
	}
	if got, _ := counted(filepath.Join(t.TempDir(), "missing"), stolenTicks, 10*ms); got != 0 {
		t.Errorf("%v without a file", got)
	}
}
