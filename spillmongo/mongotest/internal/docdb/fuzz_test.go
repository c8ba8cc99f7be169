package docdb

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// FuzzOperations takes one document for filter, change, stage and what is stored.
// Nothing may panic, and what is stored must be well formed.
func FuzzOperations(f *testing.F) {
	for _, seed := range []string{
		`{"_id":1,"a":[1,{"b":2}]}`, `{"$set":{"a.1.b":2}}`, `{"$push":{"a":{"$each":[1]}}}`, `{"$pull":{"a":{"$gt":1}}}`,
		`{"a":{"$elemMatch":{"b":{"$in":[2]}}}}`, `{"$group":{"_id":"$a","n":{"$sum":"$b"}}}`, `{"$unset":["a.b"]}`,
		`{"$rename":{"a":"a.b"}}`, `{"$or":[{"a":{"$regex":"x"}}]}`, `{"$merge":{"into":{"db":"x","coll":"y"}}}`,
	} {
		f.Add([]byte(parse(f, seed)), []byte(parse(f, `{"_id":1,"a":[1,{"b":2}],"b":{"c":3}}`)))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		x, _, err := wire.Document(one)
		if err != nil {
			return
		}
		y, _, err := wire.Document(two)
		if err != nil {
			return
		}
		v := New(1 << 20).View()
		change := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: x}
		_ = v.Insert("db.c", y)
		_, _ = v.Update("db.c", Update{Change: change, Multi: true})
		_, _ = v.Update("db.c", Update{Filter: x, Change: change, Upsert: true})
		_, _ = v.Update("db.c", Update{Sort: x, Change: bson.RawValue{Type: bson.TypeArray, Value: x}})
		docs, _ := v.Find("db.c", Query{Filter: x, Sort: y, Projection: x})
		_, _ = v.Aggregate("db", docs, []bson.Raw{x})
		Distinct(docs, "a.b")
		all, err := v.Find("db.c", Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			if _, rest, err := wire.Document(d); err != nil || len(rest) > 0 {
				t.Fatalf("stored %x: %v", []byte(d), err)
			}
		}
	})
}
