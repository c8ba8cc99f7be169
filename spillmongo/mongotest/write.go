package mongotest

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// ordered reports whether a write stops at its first error.
func (r *request) ordered() bool {
	ordered, ok := r.body.Lookup("ordered").BooleanOK()
	return ordered || !ok
}

// batch returns the documents of the field called id; there must be some.
func (r *request) batch(id string) ([]bson.Raw, error) {
	docs, err := r.message.Documents(id)
	if err != nil {
		return nil, failf(docdb.BadValue, "%v", err)
	}
	if len(docs) == 0 {
		return nil, failf(docdb.InvalidOptions, "Write batch sizes must be between 1 and %d. Got 0 operations.", wire.MaxBatch)
	}
	return docs, nil
}

// each runs one write after another and returns the errors of the failed ones, as a
// reply has them. An error that ends a transaction is one of the whole command.
func (r *request) each(docs []bson.Raw, write func(int, bson.Raw) error) (bson.D, error) {
	var failed bson.A
	for i, doc := range docs {
		err := write(i, doc)
		if err == nil {
			continue
		}
		ce := asCommandError(err)
		if ce.code == docdb.WriteConflict {
			return nil, err
		}
		failed = append(failed, append(bson.D{{Key: "index", Value: int32(i)}}, writeError(ce)...))
		if r.ordered() {
			break
		}
	}
	if failed == nil {
		return nil, nil
	}
	return bson.D{{Key: "writeErrors", Value: failed}}, nil
}

func writeError(e *commandError) bson.D {
	return bson.D{{Key: "code", Value: e.code}, {Key: "errmsg", Value: e.message}}
}

func runInsert(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	docs, err := r.batch("documents")
	if err != nil {
		return nil, err
	}
	n := int32(0)
	failed, err := r.each(docs, func(_ int, doc bson.Raw) error {
		err := r.view.Insert(ns, doc)
		if err == nil {
			n++
		}
		return err
	})
	return append(bson.D{{Key: "n", Value: n}}, failed...), err
}

// an updateStatement is one of an update command.
type updateStatement struct {
	Q            bson.Raw      `bson:"q"`
	U            bson.RawValue `bson:"u"`
	Multi        bool          `bson:"multi"`
	Upsert       bool          `bson:"upsert"`
	Sort         bson.Raw      `bson:"sort"`
	ArrayFilters bson.RawValue `bson:"arrayFilters"`
	Collation    bson.Raw      `bson:"collation"`
	Hint         bson.RawValue `bson:"hint"`
}

func runUpdate(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	docs, err := r.batch("updates")
	if err != nil {
		return nil, err
	}
	var n, modified int32
	var upserted bson.A
	failed, err := r.each(docs, func(i int, doc bson.Raw) error {
		var u updateStatement
		if err := bson.Unmarshal(doc, &u); err != nil {
			return failf(docdb.FailedToParse, "%v", err)
		}
		if err := unsupported(u.ArrayFilters, u.Collation); err != nil {
			return err
		}
		res, err := r.view.Update(ns, docdb.Update{Filter: u.Q, Sort: u.Sort, Change: u.U, Multi: u.Multi, Upsert: u.Upsert})
		n, modified = n+int32(res.Matched), modified+int32(res.Modified)
		if !res.Upserted.IsZero() {
			n++
			upserted = append(upserted, bson.D{{Key: "index", Value: int32(i)}, {Key: "_id", Value: res.Upserted}})
		}
		return err
	})
	reply := bson.D{{Key: "n", Value: n}, {Key: "nModified", Value: modified}}
	if upserted != nil {
		reply = append(reply, bson.E{Key: "upserted", Value: upserted})
	}
	return append(reply, failed...), err
}

// unsupported errs for options that would change what a write does.
func unsupported(arrayFilters bson.RawValue, collation bson.Raw) error {
	if !arrayFilters.IsZero() {
		return failf(docdb.CommandNotSupported, "arrayFilters are not supported")
	}
	if locale, ok := collation.Lookup("locale").StringValueOK(); ok && locale != "simple" {
		return failf(docdb.CommandNotSupported, "collations are not supported")
	}
	return nil
}

func runDelete(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	docs, err := r.batch("deletes")
	if err != nil {
		return nil, err
	}
	n := int32(0)
	failed, err := r.each(docs, func(_ int, doc bson.Raw) error {
		var del struct {
			Q         bson.Raw `bson:"q"`
			Limit     int64    `bson:"limit"`
			Collation bson.Raw `bson:"collation"`
		}
		if err := bson.Unmarshal(doc, &del); err != nil {
			return failf(docdb.FailedToParse, "%v", err)
		}
		if err := unsupported(bson.RawValue{}, del.Collation); err != nil {
			return err
		}
		deleted, _, err := r.view.Delete(ns, del.Q, nil, del.Limit != 1)
		n += int32(deleted)
		return err
	})
	return append(bson.D{{Key: "n", Value: n}}, failed...), err
}

func runFindAndModify(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	var cmd struct {
		Query        bson.Raw      `bson:"query"`
		Sort         bson.Raw      `bson:"sort"`
		Fields       bson.Raw      `bson:"fields"`
		Remove       bool          `bson:"remove"`
		Update       bson.RawValue `bson:"update"`
		New          bool          `bson:"new"`
		Upsert       bool          `bson:"upsert"`
		ArrayFilters bson.RawValue `bson:"arrayFilters"`
		Collation    bson.Raw      `bson:"collation"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	if err := unsupported(cmd.ArrayFilters, cmd.Collation); err != nil {
		return nil, err
	}
	if cmd.Remove {
		n, last, err := r.view.Delete(ns, cmd.Query, cmd.Sort, false)
		return modified(bson.D{{Key: "n", Value: int32(n)}}, last, cmd.Fields, err)
	}
	if cmd.Update.IsZero() {
		return nil, failf(docdb.FailedToParse, "Either an update or remove=true must be specified")
	}
	res, err := r.view.Update(ns, docdb.Update{Filter: cmd.Query, Sort: cmd.Sort, Change: cmd.Update, Upsert: cmd.Upsert})
	last := bson.D{{Key: "n", Value: int32(res.Matched)}, {Key: "updatedExisting", Value: res.Matched > 0}}
	if !res.Upserted.IsZero() {
		last[0].Value = int32(1)
		last = append(last, bson.E{Key: "upserted", Value: res.Upserted})
	}
	doc := res.Before
	if cmd.New {
		doc = res.After
	}
	return modified(last, doc, cmd.Fields, err)
}

// modified is the reply to a findAndModify.
func modified(last bson.D, doc, fields bson.Raw, err error) (bson.D, error) {
	if err != nil {
		return nil, err
	}
	reply := bson.D{{Key: "lastErrorObject", Value: last}, {Key: "value", Value: nil}}
	if doc == nil {
		return reply, nil
	}
	docs, err := docdb.Project([]bson.Raw{doc}, fields)
	if err != nil {
		return nil, err
	}
	reply[1].Value = docs[0]
	return reply, nil
}
