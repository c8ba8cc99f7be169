package mongoproxy

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestRead is what is seen of messages in all their forms.
func TestRead(t *testing.T) {
	inserted := commanding("insert", func(b *mongowire.Builder) { b.Int("maxTimeMS", 250) })
	sequence := append(append([]byte{1}, u32(uint32(4+10+len(ping)))...), append([]byte("documents\x00"), ping...)...)
	long := commanding("insert", func(b *mongowire.Builder) { b.Text("documents", string(make([]byte, 40<<10))) })
	body := append(append(u32(mongowire.MoreToCome), 0), inserted...)
	isMaster := doc(func(b *mongowire.Builder) { b.Int("isMaster", 1) })
	for _, test := range []struct {
		name           string
		message        []byte
		here           int // how much of it is; 0: all
		command, db    string
		timeout        time.Duration
		kind           kind
		whole, noReply bool
	}{
		{name: "plain", message: msg(1, 0, inserted), command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true},
		{name: "with a checksum", message: msg(1, mongowire.ChecksumPresent, inserted), command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true},
		{
			name: "documents first", message: raw(0, mongowire.OpMsg, u32(0), sequence, []byte{0}, inserted),
			command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true,
		},
		{
			name: "documents last", message: raw(0, mongowire.OpMsg, u32(0), []byte{0}, inserted, sequence),
			command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true,
		},
		{name: "no more than the beginning", message: msg(1, 0, long), here: pageSize, command: "insert"},
		{
			name: "compressed", message: raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(len(body))), []byte{1}, compressed(t, 1, body)),
			command: "insert", db: "test", timeout: 250 * time.Millisecond, whole: true, noReply: true,
		},
		{
			name:    "a query",
			message: raw(0, mongowire.OpQuery, u32(4), []byte("admin.$cmd\x00"), u32(0), u32(1), isMaster),
			command: "isMaster", db: "admin", kind: greeting, whole: true,
		},
		{
			name: "a getMore that waits", message: msg(1, 0, commanding("getMore", func(b *mongowire.Builder) { b.Int("maxTimeMS", 250) })),
			command: "getMore", db: "test", whole: true,
		},
		{name: "no time at all", message: msg(1, 0, commanding("find", func(b *mongowire.Builder) { b.Double("maxTimeMS", -1) })), command: "find", db: "test", whole: true},
		{name: "who is there", message: msg(1, 0, commanding("saslStart", nil)), command: "saslStart", db: "test", kind: proving, whole: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := frame{Header: mongowire.ParseHeader(test.message), head: test.message}
			if test.here > 0 {
				f.head, f.rest = test.message[:test.here], len(test.message)-test.here
			}
			var c command
			if err := c.read(f, make([]byte, pageSize)); err != nil {
				t.Fatal(err)
			}
			if string(c.name) != test.command || string(c.database) != test.db || c.timeout() != test.timeout || c.kind != test.kind ||
				c.whole != test.whole || c.noReply() != test.noReply {
				t.Errorf("got %s %s %v %v whole %v, no reply %v", c.name, c.database, c.timeout(), c.kind, c.whole, c.noReply())
			}
		})
	}
}
