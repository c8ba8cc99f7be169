//go:build unix

package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestPipeWithoutReader: requests are answered while the standard error of the proxy is a pipe
// that is full, although each of them writes a line. The dashboard and the metrics say that lines
// are lost, and lines are written again when a reader starts.
func TestPipeWithoutReader(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	s := newStage(t, shopOf("rate_limit: {rate: 0.01}", serve(t, fine))+"log: {rejections_per_second: 1000000}\n")
	s.stderr = write
	s.up()
	const n = 4000 // lines of about 600 bytes: more than the pipe and the queue hold
	rejected := 0
	for i := range n {
		if s.send(i, context.Background()) == http.StatusServiceUnavailable {
			rejected++
		}
	}
	if rejected < n-5 {
		t.Errorf("%d of %d requests were rejected; the others were not answered", rejected, n)
	}
	s.await("that lines are lost", func(st *shown) bool {
		for _, x := range st.Notices {
			if x.Headline == "The log cannot be written." && strings.Contains(x.Text, "the reader of the pipe has stopped") {
				return true
			}
		}
		return false
	})
	if lost := s.metric(`spillway_log_lines_lost_total{log="program"}`); lost < 100 {
		t.Errorf("%g lines are lost", lost)
	}
	go func() { // until the proxy has ended
		for buffer := make([]byte, 1<<16); ; {
			if _, err := read.Read(buffer); err != nil {
				return
			}
		}
	}()
	s.await("no notice", func(st *shown) bool { return len(st.Notices) == 0 })
	s.balance()
}
