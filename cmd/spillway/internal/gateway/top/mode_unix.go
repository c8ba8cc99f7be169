//go:build linux || darwin

package top

import (
	"os"

	"golang.org/x/sys/unix"
)

// size returns the size of a terminal. It reports false for anything else.
func size(f *os.File) (columns, lines int, ok bool) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(w.Col), int(w.Row), true
}

// readKeys makes a terminal send each key at once, without showing it. Keys that send signals do so as before. It
// reports false for anything but a terminal.
func readKeys(f *os.File) (restore func(), ok bool) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, false
	}
	keys := *before
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setTermios, &keys) != nil {
		return nil, false
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }, true
}
