package wire

import (
	"fmt"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// MaxDepth is how deep documents and arrays may be nested, as in a MongoDB server.
const MaxDepth = mongowire.MaxDepth

// Document returns the document at the start of data, which it checks to the last
// byte, and what follows it. The document shares its bytes with data.
func Document(data []byte) (doc bson.Raw, rest []byte, err error) {
	doc, rest, err = mongowire.Document(data)
	if err != nil {
		return nil, nil, fmt.Errorf("mongotest: %w", err)
	}
	return doc, rest, nil
}

// Elements returns the elements of a document or array that is known to be well
// formed. It ends early where it is not.
func Elements(doc []byte) iter.Seq2[string, bson.RawValue] {
	return func(yield func(string, bson.RawValue) bool) {
		for key, v := range mongowire.Elements(doc) {
			if !yield(string(key), bson.RawValue{Type: bson.Type(v.Kind), Value: v.Data}) {
				return
			}
		}
	}
}
