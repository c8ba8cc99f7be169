package wire

import (
	"bytes"
	"compress/zlib"
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

// ErrShort is the error of an OP_COMPRESSED of which too little is there: nothing of it can be read.
var ErrShort = errors.New("an OP_COMPRESSED that ends before anything of it can be expanded")

// expand decompresses the beginning of data into dst, as far as data and the capacity of dst
// allow, and returns it. It does not support snappy, which no library expands in part; see
// [Mask].
func expand(dst []byte, c mongowire.Compressed) ([]byte, error) {
	dst = dst[:min(len(dst), c.Size)]
	var n int
	var err error
	switch c.Compressor {
	case mongowire.CompressorNone:
		n = copy(dst, c.Data)
	case mongowire.CompressorZlib:
		n, err = expandZlib(dst, c.Data)
	case mongowire.CompressorZstd:
		n, err = expandZstd(dst, c.Data)
	default:
		err = errCompressed
	}
	// A truncated input is no error: data may be only the beginning.
	switch short := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF); {
	case err != nil && !short:
		return nil, errCompressed
	case short && n == 0:
		return nil, ErrShort
	}
	return dst[:n], nil
}

var inflaters sync.Pool // of readers of zlib

func expandZlib(dst, data []byte) (int, error) {
	src := bytes.NewReader(data)
	z, ok := inflaters.Get().(io.ReadCloser)
	var err error
	if ok {
		err = z.(zlib.Resetter).Reset(src, nil)
	} else {
		z, err = zlib.NewReader(src)
	}
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(z, dst)
	inflaters.Put(z)
	return n, err
}

// zstdMemory is the maximum memory of a decoder, whatever size a frame declares. The
// compressors of drivers need no more.
const zstdMemory = 8 << 20

var (
	zstds = sync.Pool{New: func() any {
		z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdMemory), zstd.IgnoreChecksum(true)) // options in range
		return z
	}}
	zstdTurn = make(chan struct{}, runtime.GOMAXPROCS(0))
)

func expandZstd(dst, data []byte) (int, error) {
	zstdTurn <- struct{}{} // as many as run anyway, so that memory is bounded
	defer func() { <-zstdTurn }()
	z := zstds.Get().(*zstd.Decoder)
	if err := z.Reset(bytes.NewReader(data)); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(z, dst)
	zstds.Put(z)
	return n, err
}
