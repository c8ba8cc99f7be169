package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// Compressors are the supported ones apart from noop, as a hello names them.
var Compressors = []string{"snappy", "zlib", "zstd"}

// expand returns what is said of an OP_COMPRESSED and what it holds.
func expand(data []byte) (c mongowire.Compressed, payload []byte, err error) {
	c, ok := mongowire.ParseCompressed(data)
	if !ok {
		return c, nil, fmt.Errorf("mongotest: an OP_COMPRESSED cut short, or of %d bytes", c.Size)
	}
	payload, err = decompress(c)
	if err == nil && len(payload) != c.Size {
		err = fmt.Errorf("mongotest: an OP_COMPRESSED of %d bytes says that it has %d", len(payload), c.Size)
	}
	return c, payload, err
}

func decompress(c mongowire.Compressed) ([]byte, error) {
	switch c.Compressor {
	case mongowire.CompressorNone:
		return c.Data, nil
	case mongowire.CompressorSnappy:
		if n, err := snappy.DecodedLen(c.Data); err != nil || n != c.Size {
			return nil, errors.New("mongotest: an OP_COMPRESSED says that it has another length")
		}
		return snappy.Decode(nil, c.Data)
	case mongowire.CompressorZlib:
		r, err := zlib.NewReader(bytes.NewReader(c.Data))
		if err != nil {
			return nil, err
		}
		return atMost(r, c.Size)
	case mongowire.CompressorZstd:
		r, err := zstd.NewReader(bytes.NewReader(c.Data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return atMost(r, c.Size)
	default:
		return nil, fmt.Errorf("mongotest: compressor %d was not negotiated", c.Compressor)
	}
}

// atMost reads no more than one byte above size.
func atMost(r io.Reader, size int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, int64(size)+1))
}

// compress wraps the message, header and all, into an OP_COMPRESSED.
func compress(message []byte, by byte) ([]byte, error) {
	data := bytes.Clone(message[:headerSize])
	data = append(data, message[12:16]...) // the operation code of what is inside
	data = binary.LittleEndian.AppendUint32(data, uint32(len(message)-headerSize))
	data = append(data, by)
	data, err := appendCompressed(data, message[headerSize:], by)
	binary.LittleEndian.PutUint32(data, uint32(len(data)))
	binary.LittleEndian.PutUint32(data[12:], mongowire.OpCompressed)
	return data, err
}

func appendCompressed(dst, payload []byte, by byte) ([]byte, error) {
	switch by {
	case mongowire.CompressorSnappy:
		return append(dst, snappy.Encode(nil, payload)...), nil
	case mongowire.CompressorZlib:
		out := bytes.NewBuffer(dst)
		w := zlib.NewWriter(out)
		_, err := w.Write(payload)
		err = errors.Join(err, w.Close())
		return out.Bytes(), err
	case mongowire.CompressorZstd:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return dst, err
		}
		dst = w.EncodeAll(payload, dst)
		return dst, w.Close()
	default:
		return append(dst, payload...), nil
	}
}
