package spillmongo

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// A sessionID is the UUID of a server session.
type sessionID [16]byte

// sessions discards the server sessions that a network error made dirty, where a retry
// got over the error and the driver, which discards sessions itself, has not seen it:
// the lost command may still be running in such a session. The driver's pool keeps the
// session; it gets another ID on the wire when it is used for something new.
type sessions struct {
	some atomic.Int32 // how many there are, for a look without the lock
	mu   sync.Mutex
	all  map[sessionID]*sessionState // by the ID that the driver uses
}

type sessionState struct {
	wire  sessionID // the ID that the server knows
	dirty bool      // the next use that is new gets another one
	used  time.Time

	explicit bool                        // it got dirty in a session of the application
	known    bool                        // and that is owner
	owner    weak.Pointer[mongo.Session] // without keeping it
}

// The states of sessions that the driver has dropped are forgotten when there are many,
// after more than the time for which a server keeps an unused session (30 minutes).
const (
	manySessions  = 1024
	sessionUnused = time.Hour
)

// spoil says that a network error hit the session with that ID.
func (s *sessions) spoil(ctx context.Context, cmd *command, id sessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	state := s.all[id]
	if state == nil {
		s.forget(now)
		state = &sessionState{wire: id}
		if s.all == nil {
			s.all = map[sessionID]*sessionState{}
		}
		s.all[id] = state
		s.some.Store(int32(len(s.all)))
	}
	owner := mongo.SessionFromContext(ctx)
	state.dirty, state.used = true, now
	state.explicit, state.known, state.owner = owner != nil || cmd.transaction, owner != nil, weak.Make(owner)
}

func (s *sessions) forget(now time.Time) {
	if len(s.all) < manySessions {
		return
	}
	for id, state := range s.all {
		if now.Sub(state.used) > sessionUnused {
			delete(s.all, id)
		}
	}
}

// returned says that the driver sees the network error, so that it drops the session
// itself after its last use.
func (s *sessions) returned(id sessionID) {
	if s.some.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.all[id]; state != nil && state.wire == id {
		delete(s.all, id)
		s.some.Store(int32(len(s.all)))
	}
}

// resolve returns the ID that a command has on the wire, for the one that the driver
// gave it. Something new is neither part of a cursor or of a transaction, which bind it
// to the session, nor of the session of the application that was in use when it got
// dirty.
func (s *sessions) resolve(ctx context.Context, body bson.Raw, id sessionID) sessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.all[id]
	if state == nil {
		return id
	}
	state.used = time.Now()
	if !state.dirty || goesOn(body) {
		return state.wire
	}
	if current := mongo.SessionFromContext(ctx); state.explicit && current != nil {
		if !state.known { // the end of a transaction does not need the session in its context
			state.known, state.owner = true, weak.Make(current)
		}
		if state.owner.Value() == current {
			return state.wire
		}
	}
	state.renew()
	return state.wire
}

func (s *sessionState) renew() { s.wire, s.dirty = newSessionID(), false }

// newSessionID returns a random UUID of version 4.
func newSessionID() (id sessionID) {
	_, _ = rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// goesOn reports whether a command belongs to something that began before.
func goesOn(body bson.Raw) bool {
	_, err := body.LookupErr("autocommit")
	starts, _ := body.Lookup("startTransaction").BooleanOK()
	return ofCursor(firstKey(body)) || err == nil && !starts
}

// lsid returns the ID of the session of a command as bytes of its body.
func lsid(body bson.Raw) []byte { return uuid(body.Lookup("lsid", "id")) }

// uuid returns the bytes of a UUID, which are part of v, or nil if v is something else.
func uuid(v bson.RawValue) []byte {
	const head = 4 + 1 // length, subtype
	if v.Type != bson.TypeBinary || len(v.Value) != head+len(sessionID{}) {
		return nil
	}
	return v.Value[head:]
}

// rewrite puts the IDs that the server knows into the body of a command, in place, and
// returns the ID that the driver had there.
func (s *sessions) rewrite(ctx context.Context, body bson.Raw) (driver sessionID, changed bool) {
	if list, ok := body.Lookup("endSessions").ArrayOK(); ok && firstKey(body) == "endSessions" {
		return driver, s.rewriteAll(list)
	}
	id := lsid(body)
	if id == nil {
		return driver, false
	}
	driver = sessionID(id)
	wire := s.resolve(ctx, body, driver)
	copy(id, wire[:])
	return driver, wire != driver
}

func (s *sessions) rewriteAll(list bson.RawArray) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values, _ := list.Values()
	for _, v := range values {
		doc, _ := v.DocumentOK()
		id := uuid(doc.Lookup("id"))
		if id == nil {
			continue
		}
		if state := s.all[sessionID(id)]; state != nil {
			copy(id, state.wire[:])
			changed = true
		}
	}
	return changed
}

// shown returns the command of an event with the ID that the server knows.
func (s *sessions) shown(ctx context.Context, command bson.Raw) bson.Raw {
	if s.some.Load() == 0 || len(command) == 0 {
		return command
	}
	command = bytes.Clone(command)
	s.rewrite(ctx, command)
	return command
}
