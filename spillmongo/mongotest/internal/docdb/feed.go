package docdb

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// keep is how many changes are remembered at least, unless their documents have more
// bytes than the DB may hold.
const keep = 10_000

// A Change is an entry of the history of a DB.
type Change struct {
	At        uint32 // its place in the history; they count up from 1
	Operation string // insert, update, delete, or drop
	Namespace string
	ID        bson.RawValue // of the document
	Document  bson.Raw      // as it is after the change
}

// feed is the latest changes.
type feed struct {
	at      uint32 // of the last change
	changes []Change
	bytes   int           // of their documents
	changed chan struct{} // closed at the next change
	watched bool          // somebody has the channel
}

func (db *DB) note(c Change) {
	f := &db.feed
	f.at++
	c.At = f.at
	f.changes = append(f.changes, c)
	f.bytes += len(c.Document)
	for len(f.changes) > 2*keep || f.bytes > db.limit {
		f.forget()
	}
	if f.watched {
		close(f.changed)
		f.changed, f.watched = make(chan struct{}), false
	}
}

// forget forgets the older half.
func (f *feed) forget() {
	half := (len(f.changes) + 1) / 2
	for _, c := range f.changes[:half] {
		f.bytes -= len(c.Document)
	}
	f.changes = append(f.changes[:0:0], f.changes[half:]...)
}

func (db *DB) noteWrite(ns string, before, after bson.Raw) {
	c := Change{Operation: "update", Namespace: ns, Document: after}
	switch {
	case before == nil && after == nil:
		return
	case before == nil:
		c.Operation = "insert"
	case after == nil:
		c.Operation = "delete"
	}
	if c.ID = after.Lookup("_id"); after == nil {
		c.ID = before.Lookup("_id")
	}
	db.note(c)
}

// Now is the place of the latest change in the history.
func (db *DB) Now() uint32 {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.feed.at
}

// Since returns the changes after at in a namespace, in a database if ns has no
// dot, or everywhere if it is empty. The channel is closed when there is another change
// anywhere. It errs if the history does not reach back so far.
func (db *DB) Since(at uint32, ns string) ([]Change, <-chan struct{}, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	f := &db.feed
	f.watched = true
	if len(f.changes) > 0 && at+1 < f.changes[0].At {
		return nil, nil, fail(ChangeStreamHistory, "Resume of change stream was not possible, as the resume point may no longer be in the oplog.")
	}
	var out []Change
	for _, c := range f.changes {
		if c.At > at && (ns == "" || c.Namespace == ns || !strings.Contains(ns, ".") && strings.HasPrefix(c.Namespace, ns+".")) {
			out = append(out, c)
		}
	}
	return out, f.changed, nil
}
