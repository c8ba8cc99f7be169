package mongoproxy

import (
	"encoding/binary"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/servers"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// int64Of is a value with a number of 64 bits.
func int64Of(n int64) mongowire.Value {
	return mongowire.Value{Kind: mongowire.KindInt64, Data: binary.LittleEndian.AppendUint64(nil, uint64(n))}
}

// cursorDoc is the answer of a server that has a cursor.
func cursorDoc(batch string, id int64) []byte {
	return doc(func(b *mongowire.Builder) {
		b.Value("cursor", mongowire.Value{Kind: mongowire.KindDocument, Data: doc(func(b *mongowire.Builder) {
			b.Array(batch)
			b.Value("id", int64Of(id))
			b.Text("ns", "test.c")
		})})
		b.Double("ok", 1)
	})
}

func getMore(id int64) []byte {
	return doc(func(b *mongowire.Builder) {
		b.Value("getMore", int64Of(id))
		b.Text("collection", "c")
		b.Text("$db", "test")
	})
}

// TestCursorsThatWait: drivers do not say how long a getMore of a change stream may wait, unless the
// application does; a server then takes a second. It waits for news all the same, on whatever connection
// of the client it comes.
func TestCursorsThatWait(t *testing.T) {
	stage := doc(func(b *mongowire.Builder) {
		b.Value("$changeStream", mongowire.Value{Kind: mongowire.KindDocument, Data: doc(func(*mongowire.Builder) {})})
	})
	stages := doc(func(b *mongowire.Builder) { b.Value("0", mongowire.Value{Kind: mongowire.KindDocument, Data: stage}) })
	watch := commanding("aggregate", func(b *mongowire.Builder) {
		b.Value("pipeline", mongowire.Value{Kind: mongowire.KindArray, Data: stages})
	})
	tail := commanding("find", func(b *mongowire.Builder) { b.Bool("tailable", true); b.Bool("awaitData", true) })
	for _, test := range []struct {
		name     string
		opens    []byte
		inFlight int
	}{
		{"a change stream", watch, 0},
		{"a capped collection", tail, 0},
		{"any other cursor", commanding("find", nil), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked, proceed := make(chan struct{}), make(chan struct{})
			s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
				answer := okDoc
				switch h.RequestID {
				case 50:
					answer = cursorDoc("firstBatch", 7)
				case 51:
					asked <- struct{}{}
					<-proceed
					answer = cursorDoc("nextBatch", 0)
				case 52:
					asked <- struct{}{}
					<-proceed
				}
				return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, answer)}
			})
			f := newFront(t, nil, s)
			p, q := f.dial(), f.dial()
			p.ask(hello(true))
			q.ask(hello(true))
			p.ask(msg(50, 0, test.opens))
			q.send(msg(51, 0, getMore(7)))
			<-asked
			if n := f.stats().InFlight; n != test.inFlight {
				t.Errorf("%d in flight, want %d", n, test.inFlight)
			}
			proceed <- struct{}{}
			q.receive()
			p.send(msg(52, 0, getMore(7))) // of a cursor that is not there any more
			<-asked
			if n := f.stats().InFlight; n != 1 {
				t.Errorf("%d in flight after the end of the cursor, want 1", n)
			}
			close(proceed)
			p.receive()
		})
	}
}

// TestCursorsAreBounded: clients that open cursors without end do not fill the memory, and a cursor that
// is in use is not forgotten for them.
func TestCursorsAreBounded(t *testing.T) {
	var all cursors
	at := new(servers.Server)
	all.add(at, -1)
	for id := range int64(5 * maxCursors) {
		all.add(at, id)
		if id%1000 == 0 && !all.has(at, -1) {
			t.Fatalf("forgotten after %d others", id)
		}
	}
	if n := len(all.young) + len(all.old); n > 2*maxCursors {
		t.Errorf("%d cursors are kept", n)
	}
	if all.has(at, 0) || all.has(new(servers.Server), -1) {
		t.Error("a cursor that is not there")
	}
	if all.drop(at, -1); all.has(at, -1) {
		t.Error("a cursor that has ended")
	}
}
