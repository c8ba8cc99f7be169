package logs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOrder(t *testing.T) {
	var got bytes.Buffer
	q := NewQueue(func(line []byte) error {
		got.Write(line)
		return nil
	}, nil)
	want := ""
	for i := range 500 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		if n, err := fmt.Fprint(Writer{q}, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	q.Close()
	if got.String() != want || q.Stats() != (Stats{}) {
		t.Errorf("%d bytes, want %d: %+v", got.Len(), len(want), q.Stats())
	}
	if q.Add([]byte("late\n")) || q.Stats().LostTotal != 1 {
		t.Errorf("a line after Close: %+v", q.Stats())
	}
	var none *Queue
	if none.Stats() != (Stats{}) {
		t.Error("a nil Queue has lost something")
	}
}

// TestWriterKeepsNothing: a caller may use its buffer again.
func TestWriterKeepsNothing(t *testing.T) {
	var got bytes.Buffer
	q := NewQueue(func(line []byte) error {
		got.Write(line)
		return nil
	}, nil)
	buffer := []byte("a\n")
	for c := byte('a'); c <= 'e'; c++ {
		buffer[0] = c
		_, _ = Writer{q}.Write(buffer) // it cannot fail
	}
	q.Close()
	if got.String() != "a\nb\nc\nd\ne\n" {
		t.Errorf("%q", got.String())
	}
}

// TestStuck: Add does not wait for a write that hangs. What is kept is bounded by number and by
// bytes, and each line is either written or counted as lost.
func TestStuck(t *testing.T) {
	for size, n := range map[int]int{10: 3 * maxQueued, 100_000: 100} {
		release, written := make(chan struct{}), 0
		q := NewQueue(func([]byte) error {
			<-release
			written++
			return nil
		}, nil)
		kept := 0
		for range n {
			if q.Add(make([]byte, size)) {
				kept++
			}
		}
		if most := min(maxQueued+1, maxBytes/size); kept > most || kept < most-1 {
			t.Errorf("%d lines of %d bytes are kept, want %d", kept, size, most)
		}
		if s := q.Stats(); s.LostNow != uint64(n-kept) || s.LostTotal != s.LostNow || s.Err != nil {
			t.Errorf("%+v, want %d lost", s, n-kept)
		}
		close(release)
		q.Close()
		<-q.done
		if s := q.Stats(); written != kept || s.LostTotal != uint64(n-kept) || s.LostNow != 0 || q.bytes != 0 {
			t.Errorf("%d written, %d kept, %d bytes left, %+v", written, kept, q.bytes, s)
		}
	}
}

// TestCloseOfAStuckQueue: Close returns while a write hangs.
func TestCloseOfAStuckQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		q := NewQueue(func([]byte) error {
			<-release
			return nil
		}, nil)
		q.Add([]byte("x\n"))
		began := time.Now()
		q.Close()
		if took := time.Since(began); took != closing {
			t.Errorf("it took %v", took)
		}
		close(release)
	})
}

// TestFailures: a line that cannot be written is lost, and the next one that is written ends that.
func TestFailures(t *testing.T) {
	full, wrote := errors.New("no space left on device"), make(chan struct{})
	var fails bool
	q := NewQueue(func([]byte) error {
		defer func() { wrote <- struct{}{} }()
		if fails {
			return full
		}
		return nil
	}, nil)
	for _, fails = range []bool{true, true, false} { // after each write has returned
		q.Add([]byte("x\n"))
		<-wrote
	}
	q.Close()
	if s := q.Stats(); s.LostTotal != 2 || s.LostNow != 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
}

// TestPipeWithoutReader: the queue of a real pipe loses lines, and its callers do not wait; lines are
// written again when a reader starts.
func TestPipeWithoutReader(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	q := NewQueue(func(line []byte) error {
		_, err := write.Write(line)
		return err
	}, nil)
	line := []byte(strings.Repeat("x", 999) + "\n")
	const n = 4000 // 4 MB: more than the pipe and the queue hold
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range n / 4 {
				_, _ = Writer{q}.Write(line) // it cannot fail
			}
		})
	}
	all.Wait() // there is no reader until here
	if s := q.Stats(); s.LostNow == 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
	count := make(chan int)
	go func() {
		total, buffer := 0, make([]byte, 1<<16)
		for {
			n, err := read.Read(buffer)
			total += n
			if err != nil {
				count <- total
				return
			}
		}
	}()
	left := func() int {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.bytes
	}
	for left() > 0 { // it is being written
		runtime.Gosched()
	}
	q.Close()
	_ = write.Close() // which ends the reader
	if got, lost := <-count, q.Stats().LostTotal; got != (n-int(lost))*len(line) {
		t.Errorf("%d bytes arrived, %d of %d lines were lost", got, lost, n)
	}
}
