package message

import (
	"errors"
	"io"
	"sync"
)

// A Replay is a body of unknown length that is streamed, and whose beginning is buffered.
// Until the buffer is full, a new attempt can read the body again from the beginning and
// continue with the source. Only one reader is active at a time; the reader of an earlier
// attempt may still be waiting for the client, and then hands over the bytes that it gets.
type Replay struct {
	source io.Reader
	most   int

	mu      sync.Mutex
	changed sync.Cond
	kept    []byte
	once    bool  // what was read is gone: there is no other attempt
	ended   error // of the source
	reading bool  // somebody waits for the source
	current *pass // nil: nobody reads until the next attempt
}

// NewReplay returns a Replay that buffers at most the given number of bytes of source.
func NewReplay(source io.Reader, most int) *Replay {
	p := &Replay{source: source, most: most}
	p.changed.L = &p.mu
	return p
}

var errGone = errors.New("the body is too long to be sent again")

// Open returns the body from its beginning, for the next attempt, or an error if the beginning
// is not buffered.
func (p *Replay) Open() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.once {
		return nil, errGone
	}
	p.current = &pass{replay: p}
	p.changed.Broadcast()
	return p.current, nil
}

// Rewind ends the current reader, and reports whether another one may begin.
func (p *Replay) Rewind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.once {
		p.current = nil
		p.changed.Broadcast()
	}
	return !p.once
}

// Settle stops buffering: there will be no other attempt.
func (p *Replay) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.once = true
}

// A pass is one reading of a [Replay].
type pass struct {
	replay *Replay
	at     int // how much of what is kept was read
}

var errPassed = errors.New("the body is read by another attempt")

func (r *pass) Read(b []byte) (int, error) {
	p := r.replay
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.current != r:
			return 0, errPassed
		case r.at < len(p.kept):
			return r.again(b), nil
		case p.ended != nil:
			return 0, p.ended
		case p.reading:
			p.changed.Wait()
		default:
			if n, mine := r.more(b); mine {
				return n, p.ended
			}
		}
	}
}

func (r *pass) again(b []byte) int {
	p := r.replay
	n := copy(b, p.kept[r.at:])
	if r.at += n; p.once && r.at == len(p.kept) {
		p.kept, r.at = nil, 0
	}
	return n
}

// more reads from the source, and keeps what it gets unless that is too much. It
// returns what r may return; if r does not count any more, that is left to others.
func (r *pass) more(b []byte) (n int, mine bool) {
	p := r.replay
	n = p.read(b)
	mine = p.current == r
	if mine && len(p.kept)+n > p.most {
		p.once = true
	}
	if mine && p.once {
		p.kept, r.at = nil, 0
		return n, true
	}
	p.kept = append(p.kept, b[:n]...)
	if mine {
		r.at += n
	}
	return n, mine
}

var errPanicked = errors.New("reading the body has panicked")

// read reads from the source without the lock, which is held before and after, also if the source panics. Then the
// body has ended for all readers.
func (p *Replay) read(b []byte) (n int) {
	p.reading = true
	err := errPanicked
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.reading, p.ended = false, err
		p.changed.Broadcast()
	}()
	n, err = p.source.Read(b)
	return n
}

// Close implements [io.Closer]. The source stays open: its owner closes it.
func (r *pass) Close() error {
	p := r.replay
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == r {
		p.current = nil
	}
	p.changed.Broadcast()
	return nil
}
