package docdb

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A DB is a set of collections, each known by its namespace, "database.collection".
// It is safe for concurrent use. Make one with [New].
type DB struct {
	mu    sync.RWMutex
	colls map[string]*collection
	bytes int // of all documents, and something for each and for each collection
	limit int
	locks map[lock]*Txn // documents that open transactions have written
	feed  feed
}

// New returns an empty DB that takes up to limit bytes of documents.
func New(limit int) *DB {
	return &DB{
		colls: map[string]*collection{},
		limit: limit,
		locks: map[lock]*Txn{},
		feed:  feed{changed: make(chan struct{})},
	}
}

// collection keeps documents in the order in which they were inserted.
type collection struct {
	keys    []string   // of _id; not of documents that are gone
	docs    []bson.Raw // nil for those that are gone
	index   map[string]int
	indexes []Index
}

// An Index has a name, and is otherwise just a list of fields; it makes nothing
// faster.
type Index struct {
	Name   string
	Keys   bson.Raw
	Unique bool
}

// overhead is what a document or a collection takes in addition to its bytes.
const overhead = 100

// collection returns the collection, or makes it.
func (db *DB) collection(ns string) (*collection, error) {
	if c := db.colls[ns]; c != nil {
		return c, nil
	}
	if err := checkNamespace(ns); err != nil {
		return nil, err
	}
	if err := db.charge(len(ns) + overhead); err != nil {
		return nil, err
	}
	id, err := bson.Marshal(bson.D{{Key: "_id", Value: int32(1)}})
	if err != nil {
		return nil, err
	}
	c := &collection{index: map[string]int{}, indexes: []Index{{Name: "_id_", Keys: id}}}
	db.colls[ns] = c
	return c, nil
}

func checkNamespace(ns string) error {
	name, coll, _ := strings.Cut(ns, ".")
	if name == "" || coll == "" || len(ns) > 255 || strings.ContainsAny(name, `/\ "$`) || strings.ContainsAny(ns, "\x00") {
		return fail(InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	return nil
}

func (db *DB) charge(n int) error {
	if n > 0 && db.bytes+n > db.limit {
		return fail(OutOfDiskSpace, "the collections have more than %d bytes", db.limit)
	}
	db.bytes += n
	return nil
}

// put stores doc under its key, over another one or as the last.
func (db *DB) put(ns, k string, doc bson.Raw) error {
	c, err := db.collection(ns)
	if err != nil {
		return err
	}
	i, found := c.index[k]
	if found {
		if err := db.charge(len(doc) - len(c.docs[i])); err != nil {
			return err
		}
		c.docs[i] = doc
		return nil
	}
	if err := db.charge(len(doc) + len(k) + overhead); err != nil {
		return err
	}
	c.index[k] = len(c.docs)
	c.docs, c.keys = append(c.docs, doc), append(c.keys, k)
	return nil
}

// remove deletes the document with the key, if there is one.
func (db *DB) remove(ns, k string) {
	c := db.colls[ns]
	if c == nil {
		return
	}
	i, found := c.index[k]
	if !found {
		return
	}
	db.bytes -= len(c.docs[i]) + len(k) + overhead
	delete(c.index, k)
	c.docs[i], c.keys[i] = nil, ""
	if len(c.docs) > 2*len(c.index)+16 {
		c.compact()
	}
}

// compact forgets the places of documents that are gone.
func (c *collection) compact() {
	docs, keys := make([]bson.Raw, 0, len(c.index)), make([]string, 0, len(c.index))
	for i, d := range c.docs {
		if d != nil {
			c.index[c.keys[i]] = len(docs)
			docs, keys = append(docs, d), append(keys, c.keys[i])
		}
	}
	c.docs, c.keys = docs, keys
}

func (db *DB) drop(ns string) {
	c := db.colls[ns]
	db.bytes -= len(ns) + overhead
	for k, i := range c.index {
		db.bytes -= len(c.docs[i]) + len(k) + overhead
	}
	delete(db.colls, ns)
}

// Create makes an empty collection. It errs if there is one already.
func (db *DB) Create(ns string) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.colls[ns] != nil {
		return fail(NamespaceExists, "Collection %s already exists.", ns)
	}
	_, err := db.collection(ns)
	return err
}

// Drop removes a collection, and says whether there was one.
func (db *DB) Drop(ns string) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.colls[ns] == nil {
		return false
	}
	db.drop(ns)
	db.note(Change{Operation: "drop", Namespace: ns})
	return true
}

// DropDatabase removes all collections of a database.
func (db *DB) DropDatabase(name string) {
	for _, coll := range db.Collections(name) {
		db.Drop(name + "." + coll)
	}
}

// A Size says what a database holds.
type Size struct {
	Name  string
	Bytes int
}

// Databases returns the databases that have a collection, in the order of their
// names.
func (db *DB) Databases() []Size {
	db.mu.RLock()
	defer db.mu.RUnlock()
	sizes := map[string]int{}
	for ns, c := range db.colls {
		name, _, _ := strings.Cut(ns, ".")
		for _, d := range c.docs {
			sizes[name] += len(d)
		}
		sizes[name] += overhead
	}
	var out []Size
	for name, n := range sizes {
		out = append(out, Size{name, n})
	}
	slices.SortFunc(out, func(a, b Size) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Collections returns the names of the collections of a database, in order.
func (db *DB) Collections(name string) []string {
	db.mu.RLock()
	defer db.mu.RUnlock()
	var out []string
	for ns := range db.colls {
		if coll, ok := strings.CutPrefix(ns, name+"."); ok {
			out = append(out, coll)
		}
	}
	slices.Sort(out)
	return out
}
