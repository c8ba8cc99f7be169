package docdb

import (
	"iter"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// A Query says which documents to return, and how.
type Query struct {
	Filter     bson.Raw
	Sort       bson.Raw
	Projection bson.Raw
	Skip       int64
	Limit      int64 // none if zero
}

// Find returns the documents that q asks for.
func (v View) Find(ns string, q Query) ([]bson.Raw, error) {
	v.db.mu.RLock()
	defer v.db.mu.RUnlock()
	enough := int64(-1)
	if q.Limit > 0 && len(q.Sort) == 0 {
		enough = q.Skip + q.Limit
	}
	docs, _, err := v.find(ns, q.Filter, enough)
	if err != nil {
		return nil, err
	}
	if err := sortBy(docs, q.Sort); err != nil {
		return nil, err
	}
	docs = docs[min(max(q.Skip, 0), int64(len(docs))):]
	if q.Limit > 0 {
		docs = docs[:min(q.Limit, int64(len(docs)))]
	}
	return Project(docs, q.Projection)
}

// find returns up to enough documents, all if that is negative, and their keys.
func (v View) find(ns string, filter bson.Raw, enough int64) (docs []bson.Raw, keys []string, err error) {
	if _, err := Match(filter, nil); err != nil { // even if there is no document
		return nil, nil, err
	}
	for k, d := range v.candidates(ns, filter) {
		if int64(len(docs)) == enough {
			break
		}
		m, err := Match(filter, d)
		if err != nil {
			return nil, nil, err
		}
		if m {
			docs, keys = append(docs, d), append(keys, k)
		}
	}
	return docs, keys, nil
}

// candidates returns the one document that filter can match if it names an _id, and
// else all.
func (v View) candidates(ns string, filter bson.Raw) iter.Seq2[string, bson.Raw] {
	id := filter.Lookup("_id")
	switch id.Type {
	case bson.TypeObjectID, bson.TypeInt32, bson.TypeInt64, bson.TypeString:
	default:
		return v.scan(ns)
	}
	return func(yield func(string, bson.Raw) bool) {
		k := key(id)
		if d := v.get(ns, k); d != nil {
			yield(k, d)
		}
	}
}

// sortBy sorts docs by the fields of spec, each up if it is positive, else down.
func sortBy(docs []bson.Raw, spec bson.Raw) error {
	for path, dir := range wire.Elements(spec) {
		if !dir.IsNumber() {
			return fail(BadValue, "Illegal key in $sort specification: %s", path)
		}
	}
	slices.SortStableFunc(docs, func(a, b bson.Raw) int {
		for path, dir := range wire.Elements(spec) {
			if c := compare(sortKey(a, path), sortKey(b, path)); c != 0 {
				if float(dir) < 0 {
					return -c
				}
				return c
			}
		}
		return 0
	})
	return nil
}

func sortKey(doc bson.Raw, path string) bson.RawValue {
	for _, v := range reach(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, path, nil) {
		return v
	}
	return bson.RawValue{Type: bson.TypeNull}
}

// Insert adds a document. One without an _id gets one.
func (v View) Insert(ns string, doc bson.Raw) error {
	v.db.mu.Lock()
	defer v.db.mu.Unlock()
	_, err := v.insert(ns, slices.Clone(doc))
	return err
}

// insert adds doc, which it keeps, and returns it with its _id.
func (v View) insert(ns string, doc bson.Raw) (bson.Raw, error) {
	id := doc.Lookup("_id")
	if id.IsZero() {
		d := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
		for k, e := range wire.Elements(doc) {
			d = append(d, bson.E{Key: k, Value: e})
		}
		var err error
		if doc, err = bson.Marshal(d); err != nil {
			return nil, err
		}
		id = doc.Lookup("_id")
	}
	if len(doc) > wire.MaxDocumentSize {
		return nil, fail(BSONObjectTooLarge, "object to insert too large. size in bytes: %d", len(doc))
	}
	if id.Type == bson.TypeArray || id.Type == bson.TypeRegex {
		return nil, fail(BadValue, "The '_id' value cannot be of type %s", id.Type)
	}
	k := key(id)
	if v.get(ns, k) != nil {
		return nil, duplicate(ns, "_id_")
	}
	if err := v.checkUnique(ns, k, doc); err != nil {
		return nil, err
	}
	return doc, v.store(ns, k, doc)
}

// An Update says which documents to change, and how.
type Update struct {
	Filter bson.Raw
	Sort   bson.Raw
	Change bson.RawValue // a replacement, operators, or a pipeline
	Multi  bool          // all that match, not just one
	Upsert bool
}

// An Updated says what an Update did.
type Updated struct {
	Matched  int
	Modified int
	Upserted bson.RawValue // the _id of the document that was inserted
	Before   bson.Raw      // of the last document that matched
	After    bson.Raw
}

// Update changes documents.
func (v View) Update(ns string, u Update) (Updated, error) {
	v.db.mu.Lock()
	defer v.db.mu.Unlock()
	docs, keys, err := v.pick(ns, u.Filter, u.Sort, u.Multi)
	if err != nil {
		return Updated{}, err
	}
	if u.Multi && u.Change.Type == bson.TypeEmbeddedDocument && !isOperators(u.Change.Value) {
		return Updated{}, fail(FailedToParse, "multi update is not supported for replacement-style update")
	}
	var out Updated
	for i, d := range docs {
		after, err := apply(d, u.Change, false)
		if err != nil {
			return out, err
		}
		out.Matched++
		out.Before, out.After = d, after
		if string(after) == string(d) {
			continue
		}
		if err := v.checkUnique(ns, keys[i], after); err != nil {
			return out, err
		}
		if err := v.store(ns, keys[i], after); err != nil {
			return out, err
		}
		out.Modified++
	}
	if len(docs) == 0 && u.Upsert {
		out.After, err = v.upsert(ns, u)
		out.Upserted = out.After.Lookup("_id")
	}
	return out, err
}

// pick returns the documents that match, or just the first.
func (v View) pick(ns string, filter, order bson.Raw, multi bool) ([]bson.Raw, []string, error) {
	if multi || len(order) == 0 {
		enough := int64(-1)
		if !multi {
			enough = 1
		}
		return v.find(ns, filter, enough)
	}
	docs, _, err := v.find(ns, filter, -1)
	if err != nil || len(docs) == 0 {
		return nil, nil, err
	}
	if err := sortBy(docs, order); err != nil {
		return nil, nil, err
	}
	return docs[:1], []string{key(docs[0].Lookup("_id"))}, nil
}

// upsert inserts what the update makes of the values that its filter asks for.
func (v View) upsert(ns string, u Update) (bson.Raw, error) {
	base := bson.D{}
	for k, e := range wire.Elements(u.Filter) {
		if doc, ok := e.DocumentOK(); ok && isOperators(doc) {
			e = doc.Lookup("$eq")
		}
		if k[:min(1, len(k))] != "$" && !e.IsZero() && e.Type != bson.TypeRegex {
			if err := modify(&base, "$set", k, e, true); err != nil {
				return nil, err
			}
		}
	}
	doc, err := bson.Marshal(base)
	if err != nil {
		return nil, err
	}
	if doc, err = apply(doc, u.Change, true); err != nil {
		return nil, err
	}
	return v.insert(ns, doc)
}

// Delete removes the documents that match, or just the first of them.
func (v View) Delete(ns string, filter, order bson.Raw, multi bool) (n int, last bson.Raw, err error) {
	v.db.mu.Lock()
	defer v.db.mu.Unlock()
	docs, keys, err := v.pick(ns, filter, order, multi)
	if err != nil {
		return 0, nil, err
	}
	for i, k := range keys {
		if err := v.store(ns, k, nil); err != nil {
			return n, last, err
		}
		n, last = n+1, docs[i]
	}
	return n, last, nil
}
