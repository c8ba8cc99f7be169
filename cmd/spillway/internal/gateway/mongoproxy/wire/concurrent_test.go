package wire

import (
	"bytes"
	"sync"
	"testing"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestConnectionsShareDecompressors: what one connection sends, whole, cut or broken, is not in what another
// one reads.
func TestConnectionsShareDecompressors(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		by := []byte{mongowire.CompressorZlib, mongowire.CompressorZstd}[i%2]
		data := bytes.Repeat([]byte{byte('a' + i), byte('A' + i), 0, 7}, 4<<10)
		whole := compressed(t, by, data)
		broken := append([]byte{0xff, 0xff, 0xff, 0xff}, whole...)
		all.Go(func() {
			space := make([]byte, 1000)
			for j := range 50 {
				switch j % 3 {
				case 0:
					got, err := expand(space, mongowire.Compressed{Size: len(data), Compressor: by, Data: whole})
					if err != nil || !bytes.Equal(got, data[:len(space)]) {
						t.Errorf("connection %d: %d bytes, %v", i, len(got), err)
					}
				case 1:
					got, err := expand(space, mongowire.Compressed{Size: len(data), Compressor: by, Data: whole[:len(whole)/2]})
					if err == nil && !bytes.HasPrefix(data, got) {
						t.Errorf("connection %d: half of a message has something else", i)
					}
				default:
					if _, err := expand(space, mongowire.Compressed{Size: len(data), Compressor: by, Data: broken}); err == nil {
						t.Errorf("connection %d: a broken message was read", i)
					}
				}
			}
		})
	}
	all.Wait()
}
