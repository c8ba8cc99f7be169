package suite_test

import (
	"fmt"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// The server sees the class of an operation in the comment of its commands, in all
// attempts, if the client is to label them and the application's comment allows it.
func TestLabelCommands(t *testing.T) {
	for _, row := range []struct {
		name     string
		labels   bool
		class    bool
		comment  any
		compress bool
		want     string
	}{
		{"not asked for", false, true, nil, false, "none"},
		{"no class", true, false, nil, false, "none"},
		{"labelled", true, true, nil, false, `{"criticality": "SHEDDABLE"}`},
		{"compressed", true, true, nil, true, `{"criticality": "SHEDDABLE"}`},
		{"beside members of the application", true, true, bson.D{{Key: "from", Value: "report"}}, false, `{"from": "report","criticality": "SHEDDABLE"}`},
		{"a class of the application", true, true, bson.D{{Key: "criticality", Value: "CRITICAL"}}, false, `{"criticality": "CRITICAL"}`},
		{"a text of the application", true, true, "report", false, `"report"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			r := setUp(t, mongotest.Config{Observe: func(c mongotest.Command) {
				if c.Name != "find" {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				v, err := c.Body.LookupErr("comment")
				if err != nil {
					got = append(got, "none")
					return
				}
				got = append(got, v.String())
			}}, spillmongo.Config{LabelCommands: row.labels, Rand: fixed(0)}, func(o *options.ClientOptions) {
				if row.compress {
					o.SetCompressors([]string{"zlib"})
				}
			})
			r.fail(0, times(1), overload("find"))
			ctx := t.Context()
			if row.class {
				ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
			}
			find := options.Find()
			if row.comment != nil {
				find.SetComment(row.comment)
			}
			cursor, err := r.coll.Find(ctx, bson.D{}, find)
			if err != nil {
				t.Fatal(err)
			}
			if err := cursor.Close(ctx); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := fmt.Sprint([]string{row.want, row.want}); fmt.Sprint(got) != want {
				t.Errorf("the server sees %v, want %v", got, want)
			}
		})
	}
}

// Commands of all kinds work with a label.
func TestLabelledCommandsWork(t *testing.T) {
	r := setUp(t, mongotest.Config{}, spillmongo.Config{LabelCommands: true})
	ctx := spillway.WithCriticality(t.Context(), spillway.SheddablePlus)
	if _, err := r.coll.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}}); err != nil {
		t.Error(err)
	}
	if _, err := r.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}); err != nil {
		t.Error(err)
	}
	cursor, err := r.coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(1))
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.D
	if err := cursor.All(ctx, &all); err != nil || len(all) != 2 {
		t.Errorf("%d documents, %v", len(all), err)
	}
	if n, err := r.coll.CountDocuments(ctx, bson.D{}); err != nil || n != 2 {
		t.Errorf("%d documents, %v", n, err)
	}
	if err := r.client.Ping(ctx, nil); err != nil {
		t.Error(err)
	}
	if err := r.coll.Drop(ctx); err != nil {
		t.Error(err)
	}
}
