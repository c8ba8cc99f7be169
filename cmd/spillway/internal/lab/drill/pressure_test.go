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
		got, known := stalled(file)
		if known != row.known || known && got != row.want {
			t.Errorf("%q: %v, %v; want %v, %v", row.content, got, known, row.want, row.known)
		}
	}
	if _, known := stalled(filepath.Join(t.TempDir(), "missing")); known {
		t.Error("known without a file")
	}
}
