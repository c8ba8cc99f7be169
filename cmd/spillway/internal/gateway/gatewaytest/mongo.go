package gatewaytest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// Mongo starts a server that answers each message of MongoDB with ok, and returns its address.
// The server ends with the test.
func Mongo(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerMongo(c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // it only ends Accept
		accepting.Wait()
	})
	return l.Addr().String()
}

// answerMongo answers the messages of one connection until the client closes it.
func answerMongo(c net.Conn) {
	defer c.Close()
	var b mongowire.Builder
	b.Double("ok", 1)
	doc := b.Document()
	head := make([]byte, mongowire.HeaderSize)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		h := mongowire.ParseHeader(head)
		if _, err := io.CopyN(io.Discard, c, int64(h.Length)-mongowire.HeaderSize); err != nil {
			return
		}
		if _, err := c.Write(mongowire.AppendMsg(nil, 1, h.RequestID, 0, doc)); err != nil {
			return
		}
	}
}
