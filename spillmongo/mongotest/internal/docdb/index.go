package docdb

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

const maxIndexes = 64

// Indexes returns the indexes of a collection; false if absent.
func (db *DB) Indexes(ns string) ([]Index, bool) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	c := db.colls[ns]
	if c == nil {
		return nil, false
	}
	return slices.Clone(c.indexes), true
}

// CreateIndexes adds indexes, and the collection if absent. An index that is
// there already is left alone. It returns the numbers of indexes before and after.
func (db *DB) CreateIndexes(ns string, add []Index) (before, after int, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	c, err := db.collection(ns)
	if err != nil {
		return 0, 0, err
	}
	before = len(c.indexes)
	for _, ix := range add {
		if slices.ContainsFunc(c.indexes, func(o Index) bool { return o.Name == ix.Name }) {
			continue
		}
		if len(c.indexes) == maxIndexes {
			return 0, 0, fail(67, "too many indexes for %s", ns)
		}
		c.indexes = append(c.indexes, ix)
	}
	return before, len(c.indexes), nil
}

// DropIndexes removes the index with the name or the keys, or all but that of _id
// for the name "*". It returns how many there were.
func (db *DB) DropIndexes(ns string, which bson.RawValue) (int, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	c := db.colls[ns]
	if c == nil {
		return 0, fail(NamespaceNotFound, "ns not found %s", ns)
	}
	before := len(c.indexes)
	name, _ := which.StringValueOK()
	keys, byKeys := which.DocumentOK()
	if name == "_id_" {
		return 0, fail(InvalidOptions, "cannot drop _id index")
	}
	c.indexes = slices.DeleteFunc(c.indexes, func(ix Index) bool {
		return ix.Name != "_id_" && (name == "*" || ix.Name == name || byKeys && compareDocuments(ix.Keys, keys) == 0)
	})
	if len(c.indexes) == before && name != "*" {
		return 0, fail(IndexNotFound, "index not found with name [%s]", name)
	}
	return before, nil
}

// checkUnique errs if another document than the one with key k has the values of
// doc in a unique index.
func (v View) checkUnique(ns, k string, doc bson.Raw) error {
	c := v.db.colls[ns]
	if c == nil {
		return nil
	}
	for _, ix := range c.indexes {
		if !ix.Unique {
			continue
		}
		want := indexKey(ix, doc)
		for other, d := range v.scan(ns) {
			if other != k && indexKey(ix, d) == want {
				return duplicate(ns, ix.Name)
			}
		}
	}
	return nil
}

func duplicate(ns, index string) error {
	return fail(DuplicateKey, "E11000 duplicate key error collection: %s index: %s", ns, index)
}

func indexKey(ix Index, doc bson.Raw) string {
	var out []byte
	for path := range wire.Elements(ix.Keys) {
		out = append(out, 0)
		for _, v := range reach(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, path, nil) {
			out = append(out, key(v)...)
		}
	}
	return string(out)
}
