//lint:file-ignore SA1019 the driver marks its unstable packages as deprecated

package spillmongo

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// plain returns wm, or what is in it if it is compressed.
func plain(wm []byte) ([]byte, error) {
	if opcode(wm) != opCompressed {
		return wm, nil
	}
	op, rest, ok1 := wiremessage.ReadCompressedOriginalOpCode(wm[headerSize:])
	size, rest, ok2 := wiremessage.ReadCompressedUncompressedSize(rest)
	with, rest, ok3 := wiremessage.ReadCompressedCompressorID(rest)
	if !ok1 || !ok2 || !ok3 || op != wiremessage.OpMsg || size < 0 || size > maxMessage {
		return nil, errMessage
	}
	data, err := driver.DecompressPayload(rest, driver.CompressionOpts{Compressor: with, UncompressedSize: size})
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, headerSize+len(data)), wm[:headerSize]...)
	binary.LittleEndian.PutUint32(out, uint32(headerSize+len(data)))
	binary.LittleEndian.PutUint32(out[12:], opMsg)
	return append(out, data...), nil
}

// maxMessage is the size that servers allow of a message: 48 MB.
const maxMessage = 48_000_000

func nextRequestID() int32 { return wiremessage.NextRequestID() }
