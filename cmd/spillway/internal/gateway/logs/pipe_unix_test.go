//go:build unix

package logs

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAPipeIsNotRenamed: the file of a container's log is often a pipe, or /dev/stdout. It cannot be full.
func TestAPipeIsNotRenamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	f := file{name: name, most: 1 << 12}
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	defer f.close()
	line, got := strings.Repeat("x", 999)+"\n", make([]byte, 1000)
	for range 20 {
		if err := f.write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(name + ".1"); err == nil {
			t.Fatal("the pipe was renamed")
		}
		if _, err := io.ReadFull(pipe, got); err != nil || string(got) != line {
			t.Fatalf("%q, %v", got, err)
		}
	}
}
