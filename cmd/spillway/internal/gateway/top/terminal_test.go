package top

import (
	"context"
	"os"
	"strings"
	"testing"
)

// TestFrame: each line is drawn over the one before, and what was below is erased.
func TestFrame(t *testing.T) {
	if got, want := frame("a\nb"), "\x1b[Ha\x1b[K\nb\x1b[K\x1b[J"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWatch: q ends the page, and so does the end of the terminal; no other key does.
func TestWatch(t *testing.T) {
	for _, row := range []struct {
		keys string
		left int
	}{{"xyq12", 2}, {"Q1", 1}, {"abc", 0}} {
		keys, ended := strings.NewReader(row.keys), false
		watch(keys, func() { ended = true })
		if !ended || keys.Len() != row.left {
			t.Errorf("%q: ended %v with %d keys left, want %d", row.keys, ended, keys.Len(), row.left)
		}
	}
}

// TestNoTerminal: a file and a pipe are no terminal, and get no sequences.
func TestNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx := context.Background()
	if got, same := openTerminal(ctx, f, f); got != nil || same != ctx {
		t.Error("a file is a terminal")
	}
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%v bytes, %v", info.Size(), err)
	}
}
