package message

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// CompressedHead is the minimum that is read of an OP_COMPRESSED: the first block of zstd, of
// up to 128 KiB, cannot be expanded in part.
const CompressedHead = 160 << 10

var errCompressed = errors.New("an OP_COMPRESSED that cannot be expanded")

// expand decompresses the beginning of data into dst, as far as data and the capacity of dst
// allow, and returns it.
func expand(dst []byte, c mongowire.Compressed) ([]byte, error) {
	dst = dst[:min(len(dst), c.Size)]
	var n int
	var err error
	switch c.Compressor {
	case mongowire.CompressorNone:
		n = copy(dst, c.Data)
	case mongowire.CompressorSnappy:
		n, err = expandSnappy(dst, c.Data)
	case mongowire.CompressorZlib:
		n, err = expandZlib(dst, c.Data)
	case mongowire.CompressorZstd:
		n, err = expandZstd(dst, c.Data)
	default:
		err = errCompressed
	}
	// A truncated input is no error: data may be only the beginning.
	if err != nil && (n == 0 || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF)) {
		return nil, errCompressed
	}
	return dst[:n], nil
}

// inflater is a reusable zlib reader.
type inflater interface {
	io.ReadCloser
	zlib.Resetter
}

var inflaters sync.Pool // of inflater

func expandZlib(dst, data []byte) (int, error) {
	src := bytes.NewReader(data)
	z, ok := inflaters.Get().(inflater)
	if ok {
		if err := z.Reset(src, nil); err != nil {
			return 0, err
		}
	} else {
		r, err := zlib.NewReader(src)
		if err != nil {
			return 0, err
		}
		z = r.(inflater)
	}
	n, err := io.ReadFull(z, dst)
	inflaters.Put(z)
	return n, err
}

// zstdMemory is the maximum memory of a decoder, whatever size a frame declares. The
// compressors of drivers need no more.
const zstdMemory = 8 << 20

var (
	zstds    sync.Pool // of *zstd.Decoder
	zstdTurn = make(chan struct{}, runtime.GOMAXPROCS(0))
)

func expandZstd(dst, data []byte) (int, error) {
	zstdTurn <- struct{}{} // as many as run anyway, so that memory is bounded
	defer func() { <-zstdTurn }()
	src := bytes.NewReader(data)
	z, ok := zstds.Get().(*zstd.Decoder)
	var err error
	if ok {
		err = z.Reset(src)
	} else {
		z, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdMemory), zstd.IgnoreChecksum(true))
	}
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(z, dst)
	zstds.Put(z)
	return n, err
}

// expandSnappy expands a block of snappy as far as dst and data go. The libraries
// expand whole blocks only.
//
// Source: the description of the format in the snappy project.
func expandSnappy(dst, data []byte) (n int, err error) {
	_, used := binary.Uvarint(data)
	if used <= 0 {
		return 0, errCompressed
	}
	data = data[used:]
	for n < len(dst) {
		if len(data) == 0 {
			return n, io.ErrUnexpectedEOF
		}
		t, ok := snappyTag(data)
		if !ok {
			return n, io.ErrUnexpectedEOF
		}
		if t.length <= 0 { // more than an int holds
			return n, errCompressed
		}
		data = data[t.size:]
		if t.offset == 0 && t.literal {
			m := copy(dst[n:], data[:min(t.length, len(data))])
			n, data = n+m, data[m:]
			continue
		}
		if t.offset <= 0 || t.offset > n {
			return n, errCompressed
		}
		for range min(t.length, len(dst)-n) { // it may overlap
			dst[n] = dst[n-t.offset]
			n++
		}
	}
	return n, nil
}

// A tag of snappy says what comes next: bytes as they are, or those from before.
type tag struct {
	size    int // of the tag itself
	length  int // of what it stands for
	offset  int // how far back that is
	literal bool
}

// snappyTag reads the tag at the start of data, which must not be empty. It reports
// false if not all of it is there.
func snappyTag(data []byte) (t tag, ok bool) {
	b := int(data[0])
	size := [...]int{1, 2, 3, 5}[b&3]
	if b&3 == 0 && b>>2 >= 60 {
		size = b>>2 - 60 + 2
	}
	if len(data) < size {
		return t, false
	}
	var extra [4]byte
	copy(extra[:], data[1:size])
	n := int(binary.LittleEndian.Uint32(extra[:]))
	switch b & 3 {
	case 0:
		t = tag{size, b>>2 + 1, 0, true}
		if b>>2 >= 60 {
			t.length = n + 1
		}
	case 1:
		t = tag{size, b>>2&7 + 4, b>>5<<8 | n, false}
	default:
		t = tag{size, b>>2 + 1, n, false}
	}
	return t, true
}
