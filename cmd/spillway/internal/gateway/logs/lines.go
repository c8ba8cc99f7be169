package logs

import (
	"sync"
	"time"
)

const (
	maxQueued = 1024            // lines
	maxBytes  = 1 << 20         // of lines that wait, or are being written
	closing   = 2 * time.Second // that Close waits for the writer
)

// A Queue has the lines that are not written yet; make one with [NewQueue]. It is safe for concurrent
// use.
type Queue struct {
	lines chan []byte
	done  chan struct{} // closed when all is written

	mu     sync.Mutex // of what follows, and of sending to lines
	closed bool
	bytes  int // of lines that wait, or are being written
	stats  Stats
}

// NewQueue returns a Queue whose lines are written by write, in the order of Add and by one goroutine,
// which calls end after the last line, unless it is nil. The Queue must be closed.
func NewQueue(write func(line []byte) error, end func()) *Queue {
	q := &Queue{lines: make(chan []byte, maxQueued), done: make(chan struct{})}
	go q.run(write, end)
	return q
}

// Add queues a line and reports whether it did; otherwise the line is lost. It does not wait. The
// Queue owns line from then on.
func (q *Queue) Add(line []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && q.bytes+len(line) <= maxBytes {
		select {
		case q.lines <- line:
			q.bytes += len(line)
			return true
		default:
		}
	}
	q.stats.lose()
	return false
}

func (q *Queue) run(write func([]byte) error, end func()) {
	defer close(q.done)
	for line := range q.lines {
		q.wrote(line, write(line))
	}
	if end != nil {
		end()
	}
}

func (q *Queue) wrote(line []byte, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= len(line)
	q.stats.Err = err
	if err != nil {
		q.stats.lose()
		return
	}
	q.stats.LostNow = 0
}

// Stats says whether lines are being lost.
type Stats struct {
	LostTotal uint64
	// LostNow is the number of lines that were lost since the last line was written; 0 if lines
	// are written.
	LostNow uint64
	// Err is the error of the last write. With LostNow above 0 and no error, the last write has
	// not ended: the reader of a pipe has stopped, or the disk hangs.
	Err error
}

func (s *Stats) lose() {
	s.LostTotal++
	s.LostNow++
}

// Stats returns the statistics. A nil Queue loses nothing.
func (q *Queue) Stats() Stats {
	if q == nil {
		return Stats{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stats
}

// Close writes what is queued, for two seconds at most; a write that hangs longer is left behind.
// Lines that are added later are lost. Close must be called once.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	close(q.lines)
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(closing):
	}
}

// A Writer is an [io.Writer] for one line per call.
type Writer struct{ Queue *Queue }

// Write queues a copy of the line. It never fails: [Queue.Stats] says which lines are lost.
func (w Writer) Write(line []byte) (int, error) {
	w.Queue.Add(append([]byte(nil), line...))
	return len(line), nil
}
