package docdb

import (
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A Txn is the writes of a transaction, which are invisible before Commit. It is used
// by one client at a time, and ended by Commit or Abort.
type Txn struct {
	db     *DB
	writes map[string]*overlay
	size   int
}

// overlay is what a transaction has written to a collection.
type overlay struct {
	order []string
	docs  map[string]bson.Raw // nil for those that are deleted
}

type lock struct{ ns, key string }

// Begin starts a transaction.
func (db *DB) Begin() *Txn { return &Txn{db: db, writes: map[string]*overlay{}} }

// Commit makes the writes visible.
func (t *Txn) Commit() error {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	v := View{db: t.db}
	for ns, o := range t.writes {
		for _, k := range o.order {
			if err := v.store(ns, k, o.docs[k]); err != nil {
				return err
			}
		}
	}
	t.end()
	return nil
}

// Abort forgets the writes. After Commit it does nothing.
func (t *Txn) Abort() {
	t.db.mu.Lock()
	defer t.db.mu.Unlock()
	t.end()
}

func (t *Txn) end() {
	for ns, o := range t.writes {
		for k := range o.docs {
			if l := (lock{ns, k}); t.db.locks[l] == t {
				delete(t.db.locks, l)
			}
		}
	}
	t.writes, t.size = map[string]*overlay{}, 0
}

func (t *Txn) store(ns, k string, doc bson.Raw) error {
	l := lock{ns, k}
	if other := t.db.locks[l]; other != nil && other != t {
		return fail(WriteConflict, "Write conflict during plan execution and yielding is disabled.")
	}
	if err := checkNamespace(ns); err != nil {
		return err
	}
	if t.size += len(doc) + len(k) + overhead; t.size > t.db.limit {
		return fail(OutOfDiskSpace, "the transaction has more than %d bytes", t.db.limit)
	}
	t.db.locks[l] = t
	o := t.writes[ns]
	if o == nil {
		o = &overlay{docs: map[string]bson.Raw{}}
		t.writes[ns] = o
	}
	if _, again := o.docs[k]; !again {
		o.order = append(o.order, k)
	}
	o.docs[k] = doc
	return nil
}

// A View is a DB as a client sees it. It is safe for concurrent use if it has no
// transaction.
type View struct {
	db  *DB
	txn *Txn // may be nil
}

// View returns the database as it is.
func (db *DB) View() View { return View{db: db} }

// View returns the database with the writes of the transaction.
func (t *Txn) View() View { return View{db: t.db, txn: t} }

// scan returns the documents of a collection, and the keys of their _id.
func (v View) scan(ns string) iter.Seq2[string, bson.Raw] {
	return func(yield func(string, bson.Raw) bool) {
		o := v.overlay(ns)
		c := v.db.colls[ns]
		if c != nil {
			for i, d := range c.docs {
				k := c.keys[i]
				if own, ok := o.docs[k]; ok {
					d = own
				}
				if d != nil && !yield(k, d) {
					return
				}
			}
		}
		for _, k := range o.order {
			if c != nil {
				if _, seen := c.index[k]; seen {
					continue
				}
			}
			if d := o.docs[k]; d != nil && !yield(k, d) {
				return
			}
		}
	}
}

var nothing overlay

func (v View) overlay(ns string) *overlay {
	if v.txn != nil && v.txn.writes[ns] != nil {
		return v.txn.writes[ns]
	}
	return &nothing
}

// get returns the document with the key; nil if absent.
func (v View) get(ns, k string) bson.Raw {
	if d, ok := v.overlay(ns).docs[k]; ok {
		return d
	}
	if c := v.db.colls[ns]; c != nil {
		if i, ok := c.index[k]; ok {
			return c.docs[i]
		}
	}
	return nil
}

// store writes a document, or deletes it if doc is nil.
func (v View) store(ns, k string, doc bson.Raw) error {
	if v.txn != nil {
		return v.txn.store(ns, k, doc)
	}
	old := v.get(ns, k)
	if doc == nil {
		v.db.remove(ns, k)
	} else if err := v.db.put(ns, k, doc); err != nil {
		return err
	}
	v.db.noteWrite(ns, old, doc)
	return nil
}
