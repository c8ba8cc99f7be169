package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// A lockedBuffer is a buffer that may be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestTuneIsRejected: what cannot work ends at once, with a reason.
func TestTuneIsRejected(t *testing.T) {
	const server = "mongodb://127.0.0.1:1" // nothing is there
	for _, row := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--uri", server}, exitUsage, "no target"},
		{[]string{"--uri", "http://x", "--queued=1"}, exitUsage, "scheme"},
		{[]string{"--uri", "mongodb://a,b", "--queued=1"}, exitUsage, "direct"},
		{[]string{"--uri", server, "--queued=1", "--timeout=200ms"}, exitEnvironment, "server selection"},
		{[]string{"--uri", server, "--queued=1", "--limits=tickets"}, exitUsage, "limits"},
		{[]string{"--uri", server, "--queued=1", "--reaction=1ms"}, exitUsage, "Reaction"},
		{[]string{"--uri", server, "--cpu=90"}, exitUsage, "--cpu is 90, must be a share from 0 to 1, such as 0.9"},
		{[]string{"--uri", server, "--memory=-0.1"}, exitUsage, "--memory is -0.1, must be a share"},
		{[]string{"--uri", server, "--tickets=NaN"}, exitUsage, "--tickets is NaN, must be a share"},
	} {
		var stdout, stderr lockedBuffer
		if status := run(t.Context(), append([]string{"tune"}, row.args...), &stdout, &stderr); status != row.status || !strings.Contains(stderr.String(), row.want) {
			t.Errorf("%v: status %d, want %d: %s, want %q", row.args, status, row.status, stderr.String(), row.want)
		}
	}
}
