package mongoproxy

import (
	"sync"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/servers"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
)

// maxCursors is how many cursors are known for certain: more than the change streams of most clusters.
const maxCursors = 1 << 13

// cursors are those at which a getMore waits for news, whether it says so or not: drivers give a maxTimeMS
// only where the application does. They become known when they are opened, and are shared by all
// connections of a listener, as any connection of a client may use them. The ones that were not used for
// longest are forgotten. The zero cursors are ready for use.
type cursors struct {
	mu         sync.Mutex
	young, old map[cursor]struct{} // old was young, until that was full
}

type cursor struct {
	at *servers.Server
	id int64
}

func (s *cursors) add(at *servers.Server, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(cursor{at, id})
}

// put makes x the youngest. The lock is held.
func (s *cursors) put(x cursor) {
	if s.young == nil || len(s.young) >= maxCursors {
		s.old, s.young = s.young, make(map[cursor]struct{})
	}
	s.young[x] = struct{}{}
}

// has reports whether a cursor is known, which is in use now.
func (s *cursors) has(at *servers.Server, id int64) bool {
	x := cursor{at, id}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.young[x]; ok {
		return true
	}
	_, ok := s.old[x]
	if ok {
		delete(s.old, x)
		s.put(x)
	}
	return ok
}

func (s *cursors) drop(at *servers.Server, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.young, cursor{at, id})
	delete(s.old, cursor{at, id})
}

// meet notes on a getMore whether its cursor waits for news.
func (c *conn) meet(cmd *wire.Command) {
	if id, ok := cmd.Cursor(); ok {
		cmd.Awaits = c.listener.cursors.has(c.place, id)
	}
}

// follow keeps what an answer says of the cursors that wait for news.
func (c *conn) follow(a *answered, cmd *wire.Command) {
	if !cmd.Opens && !cmd.Awaits {
		return
	}
	space := wire.GetPage()
	defer wire.PutPage(space)
	id, known := wire.CursorOf(a.Frame, space[:])
	switch all := &c.listener.cursors; {
	case cmd.Awaits && (a.Failed || known && id == 0):
		of, _ := cmd.Cursor() // which it has
		all.drop(c.place, of)
	case cmd.Opens && known && id != 0:
		all.add(c.place, id)
	}
}
