package top

import (
	"context"
	"io"
	"os"
	"strings"
)

// Sequences of ECMA-48 and xterm.
const (
	enter = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	erase = "\x1b[K" // the rest of the line
	below = "\x1b[J" // the rest of the screen
)

// A terminal shows pages. Make one with [openTerminal], and close it.
type terminal struct {
	w       io.Writer
	out     *os.File
	restore func()
}

// openTerminal returns the terminal that out writes to, nil if it is none. Keys come from in, which may be another device. The
// key q ends the context that is returned.
func openTerminal(ctx context.Context, in, out *os.File) (*terminal, context.Context) {
	if _, _, ok := size(out); !ok {
		return nil, ctx
	}
	t := &terminal{w: out, out: out, restore: func() {}}
	if restore, ok := readKeys(in); ok {
		t.restore = restore
		var quit context.CancelFunc
		ctx, quit = context.WithCancel(ctx)
		go watch(in, quit) // until the end of the program: a read of a terminal cannot be ended
	}
	_, _ = io.WriteString(t.w, enter) // a terminal that is gone needs no page
	return t, ctx
}

// watch calls quit at the key q, and when there are no more keys.
func watch(keys io.Reader, quit func()) {
	defer quit()
	key := make([]byte, 1)
	for {
		n, err := keys.Read(key)
		if n == 1 && (key[0] == 'q' || key[0] == 'Q') || err != nil {
			return
		}
	}
}

// Size returns the columns and lines of the terminal.
func (t *terminal) Size() (columns, lines int) {
	columns, lines, ok := size(t.out)
	if !ok || columns <= 0 || lines <= 0 {
		return 80, 24
	}
	return columns, lines
}

// Show shows a page in place of the one before.
func (t *terminal) Show(page string) error {
	_, err := io.WriteString(t.w, frame(page))
	return err
}

// frame returns what draws a page over another one, without an empty screen in between.
func frame(page string) string {
	return home + strings.ReplaceAll(page, "\n", erase+"\n") + erase + below
}

// Close restores the terminal as it was.
func (t *terminal) Close() {
	_, _ = io.WriteString(t.w, leave) // as above
	t.restore()
}
