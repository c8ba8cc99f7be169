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
	targetBytes = visible() // no control characters, no blanks
	valueBytes  = visible(' ', '\t')

	plainPathBytes = bytesOf(alphanumeric + "/-_.~$&+,:;=@") // bytes that package url never escapes
)

func bytesOf(s string) (set byteSet) {
	for _, c := range []byte(s) {
		set[c] = true
	}
	return set
}

// visible returns all bytes except blanks and control characters, and the bytes in more.
func visible(more ...byte) (set byteSet) {
	for c := range set {
		set[c] = c > ' ' && c != 0x7f
	}
	for _, c := range more {
		set[c] = true
	}
	return set
}

// span returns the number of bytes at the start of b that are in the set.
func (set *byteSet) span(b []byte) int {
	for i, c := range b {
		if !set[c] {
			return i
		}
	}
	return len(b)
}

// valueSpan returns the number of bytes at the start of b that can be part of a value. It checks
// eight bytes at a time, up to the end of the line.
func valueSpan(b []byte) (n int) {
	for ; len(b)-n >= 8; n += 8 {
		if c := controls(binary.LittleEndian.Uint64(b[n:])); c != 0 {
			if end := n + bits.TrailingZeros64(c)/8; b[end] == crlf[0] {
				return end
			}
			break // it may be a tab
		}
	}
	return n + valueBytes.span(b[n:])
}

// controls returns a word that is not zero if one of eight bytes is a control character. Its lowest
// set bit is in the first such byte.
func controls(eight uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	del := eight ^ 0x7f*each
	return ((eight-' '*each)&^eight | (del-each)&^del) & high
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
