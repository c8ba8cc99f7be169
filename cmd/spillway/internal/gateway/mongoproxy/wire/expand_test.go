package wire

import (
	"bytes"
	"compress/zlib"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/seed90641741/spillway/internal/mongowire"
	"github.com/seed90641741/spillway/internal/race"
)

// compressed returns data by a compressor.
func compressed(t testing.TB, by byte, data []byte) []byte {
	t.Helper()
	switch by {
	case mongowire.CompressorZlib:
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	case mongowire.CompressorZstd:
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		return w.EncodeAll(data, nil)
	}
	return data
}

// TestExpandBeginning: the beginning can be expanded from the whole input and from a part.
func TestExpandBeginning(t *testing.T) {
	data := make([]byte, 300<<10)
	for i := range data {
		data[i] = byte(i * i >> 9)
	}
	for _, by := range []byte{mongowire.CompressorNone, mongowire.CompressorZlib, mongowire.CompressorZstd} {
		all := compressed(t, by, data)
		for _, part := range []int{len(all), min(len(all), CompressedHead)} {
			got, err := expand(make([]byte, 1000), mongowire.Compressed{Size: len(data), Compressor: by, Data: all[:part]})
			if err != nil || !bytes.Equal(got, data[:1000]) {
				t.Errorf("compressor %d, %d of %d bytes: got %d bytes, error %v", by, part, len(all), len(got), err)
			}
		}
		short := data[:40]
		got, err := expand(make([]byte, 1000), mongowire.Compressed{Size: 40, Compressor: by, Data: compressed(t, by, short)})
		if err != nil || !bytes.Equal(got, short) {
			t.Errorf("compressor %d: got %x, error %v", by, got, err)
		}
	}
}

// TestBombsStaySmall: expand fills only its buffer, even if the whole message expands to 40
// MiB.
func TestBombsStaySmall(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, by := range []byte{mongowire.CompressorZlib, mongowire.CompressorZstd} {
		bomb := compressed(t, by, make([]byte, 40<<20))
		space := make([]byte, 16<<10)
		if got, err := expand(space, mongowire.Compressed{Size: 47 << 20, Compressor: by, Data: bomb}); err != nil || len(got) != 16<<10 {
			t.Errorf("compressor %d: %d bytes, error %v", by, len(got), err)
		}
	}
}
