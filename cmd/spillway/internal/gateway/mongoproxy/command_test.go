package mongoproxy

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestRead parses messages in all their forms.
func TestRead(t *testing.T) {
	inserted := commanding("insert", func(b *mongowire.Builder) { b.Int("maxTimeMS", 250) })
	sequence := append(append([]byte{1}, u32(uint32(4+10+len(ping)))...), append([]byte("documents\x00"), ping...)...)
	long := commanding("insert", func(b *mongowire.Builder) { b.Text("documents", string(make([]byte, 40<<10))) })
	body := append(append(u32(mongowire.MoreToCome), 0), inserted...)
	isMaster := doc(func(b *mongowire.Builder) { b.Int("isMaster", 1) })
	for _, test := range []struct {
		name           string
		text           []byte
		here           int // how much of it is; 0: all
		command, db    string
		timeout        time.Duration
		kind           wire.Kind
		whole, noReply bool
	}{
		{name: "plain", text: msg(1, 0, inserted), command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true},
		{name: "with a checksum", text: msg(1, mongowire.ChecksumPresent, inserted), command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true},
		{
			name: "documents first", text: raw(0, mongowire.OpMsg, u32(0), sequence, []byte{0}, inserted),
			command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true,
		},
		{
			name: "documents last", text: raw(0, mongowire.OpMsg, u32(0), []byte{0}, inserted, sequence),
			command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true,
		},
		{name: "no more than the beginning", text: msg(1, 0, long), here: wire.PageSize, command: "insert"},
		{
			name: "compressed", text: raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(len(body))), []byte{mongowire.CompressorZlib}, compressed(t, mongowire.CompressorZlib, body)),
			command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true, noReply: true,
		},
		{
			name:    "a query",
			text:    raw(0, mongowire.OpQuery, u32(4), []byte("admin.$cmd\x00"), u32(0), u32(1), isMaster),
			command: "isMaster", db: "admin", kind: wire.Greeting, whole: true,
		},
		{
			name: "a getMore that waits", text: msg(1, 0, commanding("getMore", func(b *mongowire.Builder) { b.Int("maxTimeMS", 250) })),
			command: "getMore", db: "test", whole: true,
		},
		{name: "no time at all", text: msg(1, 0, commanding("find", func(b *mongowire.Builder) { b.Double("maxTimeMS", -1) })), command: "find", db: "test", whole: true},
		{name: "who is there", text: msg(1, 0, commanding("saslStart", nil)), command: "saslStart", db: "test", kind: wire.Proving, whole: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := wire.Frame{Header: mongowire.ParseHeader(test.text), Head: test.text}
			if test.here > 0 {
				f.Head, f.Rest = test.text[:test.here], len(test.text)-test.here
			}
			var c wire.Command
			if err := c.Read(f, make([]byte, wire.PageSize)); err != nil {
				t.Fatal(err)
			}
			if string(c.Name) != test.command || string(c.Database) != test.db || c.Timeout() != test.timeout || c.Kind != test.kind ||
				c.Whole != test.whole || c.NoReply() != test.noReply {
				t.Errorf("got %s %s %v %v whole %v, no reply %v", c.Name, c.Database, c.Timeout(), c.Kind, c.Whole, c.NoReply())
			}
		})
	}
}
