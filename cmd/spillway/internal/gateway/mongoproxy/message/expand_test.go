package message

import (
	"bytes"
	"compress/zlib"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// compressed returns data by a compressor.
func compressed(t testing.TB, by byte, data []byte) []byte {
	t.Helper()
	switch by {
	case mongowire.CompressorSnappy:
		return snappy.Encode(nil, data)
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
	for by := range byte(4) {
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
	for by := byte(1); by < 4; by++ {
		bomb := compressed(t, by, make([]byte, 40<<20))
		space := make([]byte, 16<<10)
		if got, err := expand(space, mongowire.Compressed{Size: 47 << 20, Compressor: by, Data: bomb}); err != nil || len(got) != 16<<10 {
			t.Errorf("compressor %d: %d bytes, error %v", by, len(got), err)
		}
	}
}

// TestSnappyLies: a length of 32 bits that exceeds the input is an error, even where int has
// 32 bits.
func TestSnappyLies(t *testing.T) {
	for _, tag := range []byte{63 << 2, 3} { // a literal, and a copy
		lie := []byte{100, tag, 0xfe, 0xff, 0xff, 0xff, 'x'}
		if n, err := expandSnappy(make([]byte, 100), lie); err == nil {
			t.Errorf("tag %x: %d bytes", tag, n)
		}
	}
}

// FuzzSnappy compares the reader of beginnings with the library.
func FuzzSnappy(f *testing.F) {
	f.Add(snappy.Encode(nil, bytes.Repeat([]byte("spillway "), 99)), 100)
	f.Add([]byte{8, 4, 1, 2, 5, 2}, 8)
	f.Fuzz(func(t *testing.T, data []byte, room int) {
		if room < 0 || room > 1<<20 {
			return
		}
		n, err := snappy.DecodedLen(data)
		if err != nil || n > 1<<20 {
			return
		}
		want, err := snappy.Decode(nil, data)
		dst := make([]byte, min(room, n))
		got, mine := expandSnappy(dst, data)
		if err == nil && (mine != nil || !bytes.Equal(dst[:got], want[:len(dst)])) {
			t.Errorf("got %x, error %v; want %x", dst[:got], mine, want[:len(dst)])
		}
	})
}
