package wire

import (
	"slices"
	"testing"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestNoSnappy: a driver never learns that the server supports snappy. The other compressors
// keep their order.
func TestNoSnappy(t *testing.T) {
	for _, row := range []struct{ offered, want []string }{
		{[]string{"snappy"}, nil},
		{[]string{"snappy", "zstd", "zlib"}, []string{"zstd", "zlib"}},
		{[]string{"zlib", "snappy"}, []string{"zlib"}},
		{nil, nil},
	} {
		var b mongowire.Builder
		b.Array("compression", row.offered...)
		b.Double("ok", 1)
		seen := Mask{}.Apply(b.Document())
		var got []string
		for _, v := range mongowire.Elements(mongowire.Lookup(seen, "compression").Array()) {
			got = append(got, string(v.Text()))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%q became %q, want %q", row.offered, got, row.want)
		}
		if _, rest, err := mongowire.Document(seen); err != nil || len(rest) > 0 || !mongowire.Lookup(seen, "ok").True() {
			t.Errorf("%q: malformed, or without ok: %x", row.offered, seen)
		}
	}
	if v := mongowire.Lookup(Mask{}.Apply(nil), "compression"); v.Kind != 0 {
		t.Errorf("%x where the server has no list", v.Data)
	}
}

// TestSnappyIsMalformed: a client that uses snappy although no hello offered it is malformed.
func TestSnappyIsMalformed(t *testing.T) {
	if got, err := expand(make([]byte, 100), mongowire.Compressed{Size: 3, Compressor: mongowire.CompressorSnappy, Data: []byte("\x03\x08abc")}); err == nil {
		t.Errorf("expanded to %q", got)
	}
}
