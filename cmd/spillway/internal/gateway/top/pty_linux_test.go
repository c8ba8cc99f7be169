package top

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// pseudo returns the two ends of a terminal, with its size.
func pseudo(t *testing.T, columns, lines uint16) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudoterminals: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	n, err := unix.IoctlGetUint32(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return keyboard, terminal
}

// TestTerminal shows a page on a terminal: keys come at once and are not shown, q ends it, and all is restored.
func TestTerminal(t *testing.T) {
	keyboard, screen := pseudo(t, 97, 31)
	before, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	shown, ctx := openTerminal(t.Context(), screen, screen)
	if shown == nil {
		t.Fatal("it is no terminal")
	}
	if columns, lines := shown.Size(); columns != 97 || lines != 31 {
		t.Errorf("%d columns, %d lines", columns, lines)
	}
	during, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)
	if err != nil || during.Lflag&(unix.ICANON|unix.ECHO) != 0 || during.Lflag&unix.ISIG == 0 {
		t.Errorf("flags %x, %v", during.Lflag, err)
	}
	if err := shown.Show("one\ntwo"); err != nil {
		t.Error(err)
	}
	if _, err := keyboard.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	shown.Close()
	after, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	var got strings.Builder
	for text := make([]byte, 1000); !strings.HasSuffix(got.String(), leave); {
		n, err := keyboard.Read(text)
		if err != nil {
			t.Fatalf("after %q: %v", got.String(), err)
		}
		got.Write(text[:n])
	}
	if want := enter + home + "one" + erase + "\r\ntwo" + erase + below + leave; got.String() != want {
		t.Errorf("the terminal got %q, want %q", got.String(), want)
	}
}
