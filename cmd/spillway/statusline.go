package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// A statusLine shows the last line of progress on a terminal, in place of the one before.
type statusLine struct{ w io.Writer }

// progressOn returns where to write lines of progress, and what ends them. They are shown on a terminal only.
func progressOn(w io.Writer) (io.Writer, func()) {
	if !isTerminal(w) {
		return io.Discard, func() {}
	}
	s := statusLine{w}
	return s, s.clear
}

// isTerminal reports whether w is a device that shows characters.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const eraseLine = "\r\x1b[K"

// Write shows a line.
func (s statusLine) Write(line []byte) (int, error) {
	if _, err := fmt.Fprintf(s.w, "%s%s", eraseLine, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
		return 0, err
	}
	return len(line), nil
}

func (s statusLine) clear() { _, _ = io.WriteString(s.w, eraseLine) } // a terminal that is gone needs no end
