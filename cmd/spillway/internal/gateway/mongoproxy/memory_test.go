package mongoproxy

import (
	"bytes"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestCompressedWithoutMemory: nothing can be read of a block of zstd before all of it is there. A command
// that comes while others have taken all memory waits for some, and is not malformed.
func TestCompressedWithoutMemory(t *testing.T) {
	text := new(bytes.Buffer) // that cannot be made much shorter
	for i := uint64(1); text.Len() < 60<<10; i = i*6364136223846793005 + 1442695040888963407 {
		text.WriteByte('a' + byte(i>>33%26))
	}
	body := append([]byte{0, 0, 0, 0, 0}, commanding("insert", func(b *mongowire.Builder) { b.Text("x", text.String()) })...)
	small := compressed(t, mongowire.CompressorZstd, body)
	m := raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(len(body))), []byte{mongowire.CompressorZstd}, small)
	defer resources.Memory.SetLimit(0)
	for _, comes := range []bool{true, false} {
		f := newFront(t, func(c *config.Mongo) {
			if !comes {
				c.StallTimeout = 50 * time.Millisecond
			}
		}, newServer(t, fine))
		p := f.dial()
		p.ask(hello(true))
		resources.Memory.SetLimit(1)
		p.send(m)
		if !comes {
			p.ended()
			f.closed(Cut)
			continue
		}
		time.AfterFunc(50*time.Millisecond, func() { resources.Memory.SetLimit(0) })
		if _, answer := p.receive(); !isOK(answer) {
			t.Error("no answer")
		}
		if n := f.stats().Closed[Malformed]; n > 0 {
			t.Errorf("%d connections were malformed", n)
		}
	}
}
