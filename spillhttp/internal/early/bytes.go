package early

import (
	"encoding/binary"
	"math/bits"
)

// A byteSet is a set of bytes.
type byteSet [256]bool

const (
	capitals     = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyz" + capitals
)

var (
	methodBytes = bytesOf(capitals)
	nameBytes   = bytesOf(alphanumeric + "!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2, token
	hostBytes   = bytesOf(alphanumeric + ".-_:[]")
	targetBytes = visible() // without controls and blanks
	valueBytes  = visible(' ', '\t')

	plainPathBytes = bytesOf(alphanumeric + "/-_.~$&+,:;=@") // which package url never escapes
)

func bytesOf(s string) (set byteSet) {
	for _, c := range []byte(s) {
		set[c] = true
	}
	return set
}

// visible returns all bytes but blanks and controls, and also those in more.
func visible(more ...byte) (set byteSet) {
	for c := range set {
		set[c] = c > ' ' && c != 0x7f
	}
	for _, c := range more {
		set[c] = true
	}
	return set
}

// span returns how many bytes at the start of b are in the set.
func (set *byteSet) span(b []byte) int {
	for i, c := range b {
		if !set[c] {
			return i
		}
	}
	return len(b)
}

// valueSpan returns how many bytes at the start of b can be part of a value. It looks at eight
// at once, up to the end of the line.
func valueSpan(b []byte) (n int) {
	for ; len(b)-n >= 8; n += 8 {
		if c := controls(binary.LittleEndian.Uint64(b[n:])); c != 0 {
			if end := n + bits.TrailingZeros64(c)/8; b[end] == crlf[0] {
				return end
			}
			break // a tab, perhaps
		}
	}
	return n + valueBytes.span(b[n:])
}

// controls returns a word whose lowest set bit is in the byte that is the first control
// character of eight.
func controls(eight uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	del := eight ^ 0x7f*each
	return ((eight-' '*each)&^eight | (del-each)&^del) & high
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
