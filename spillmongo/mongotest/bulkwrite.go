package mongotest

import (
	"cmp"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// bulkOperation is one of a bulkWrite command. The first three say in which of the
// namespaces it inserts, updates or deletes.
type bulkOperation struct {
	Insert       *int32        `bson:"insert"`
	Update       *int32        `bson:"update"`
	Delete       *int32        `bson:"delete"`
	Document     bson.Raw      `bson:"document"`
	Filter       bson.Raw      `bson:"filter"`
	UpdateMods   bson.RawValue `bson:"updateMods"`
	Multi        bool          `bson:"multi"`
	Upsert       bool          `bson:"upsert"`
	Sort         bson.Raw      `bson:"sort"`
	ArrayFilters bson.RawValue `bson:"arrayFilters"`
	Collation    bson.Raw      `bson:"collation"`
}

// bulkCounts are the numbers in the reply to a bulkWrite command.
type bulkCounts struct {
	Errors   int32 `bson:"nErrors"`
	Inserted int32 `bson:"nInserted"`
	Matched  int32 `bson:"nMatched"`
	Modified int32 `bson:"nModified"`
	Upserted int32 `bson:"nUpserted"`
	Deleted  int32 `bson:"nDeleted"`
}

func runBulkWrite(r *request) (bson.D, error) {
	if r.db != "admin" {
		return nil, failf(codeUnauthorized, "bulkWrite may only be run against the admin database.")
	}
	ops, err := r.batch("ops")
	if err != nil {
		return nil, err
	}
	namespaces, err := r.namespaces()
	if err != nil {
		return nil, err
	}
	errorsOnly, _ := r.body.Lookup("errorsOnly").BooleanOK()
	var counts bulkCounts
	var results []bson.Raw
	_, err = r.each(ops, func(i int, doc bson.Raw) error {
		result, err := r.bulkOne(doc, namespaces, &counts)
		result = append(bson.D{{Key: "ok", Value: 1.0}, {Key: "idx", Value: int32(i)}}, result...)
		if err != nil {
			counts.Errors++
			result[0].Value = 0.0
			result = append(result, writeError(asCommandError(err))...)
		}
		if err != nil || !errorsOnly {
			raw, merr := bson.Marshal(result)
			results, err = append(results, raw), errors.Join(err, merr)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.bulkReply(counts, results)
}

func (r *request) bulkReply(counts bulkCounts, results []bson.Raw) (bson.D, error) {
	reply, err := r.firstBatch("admin.$cmd.bulkWrite", results, nil, false)
	if err != nil {
		return nil, err
	}
	raw, err := bson.Marshal(counts)
	for k, v := range wire.Elements(raw) {
		reply = append(reply, bson.E{Key: k, Value: v})
	}
	return reply, err
}

// namespaces returns the namespaces that the operations of a bulkWrite refer to by number.
func (r *request) namespaces() (out []string, err error) {
	infos, err := r.batch("nsInfo")
	for _, info := range infos {
		ns, ok := info.Lookup("ns").StringValueOK()
		if !ok || !strings.Contains(ns, ".") {
			return nil, failf(docdb.InvalidNamespace, "a namespace of a bulkWrite must be database.collection")
		}
		out = append(out, ns)
	}
	return out, err
}

// bulkOne runs one operation, and returns what to say of it.
func (r *request) bulkOne(doc bson.Raw, namespaces []string, counts *bulkCounts) (bson.D, error) {
	var op bulkOperation
	if err := bson.Unmarshal(doc, &op); err != nil {
		return nil, failf(docdb.FailedToParse, "%v", err)
	}
	if err := unsupported(op.ArrayFilters, op.Collation); err != nil {
		return nil, err
	}
	index := cmp.Or(op.Insert, op.Update, op.Delete)
	if index == nil || *index < 0 || int(*index) >= len(namespaces) {
		return nil, failf(docdb.BadValue, "an operation of a bulkWrite names no namespace")
	}
	ns := namespaces[*index]
	switch {
	case op.Insert != nil:
		if err := r.view.Insert(ns, op.Document); err != nil {
			return nil, err
		}
		counts.Inserted++
		return bson.D{{Key: "n", Value: int32(1)}}, nil
	case op.Update != nil:
		return r.bulkUpdate(ns, &op, counts)
	default:
		n, _, err := r.view.Delete(ns, op.Filter, nil, op.Multi)
		counts.Deleted += int32(n)
		return bson.D{{Key: "n", Value: int32(n)}}, err
	}
}

func (r *request) bulkUpdate(ns string, op *bulkOperation, counts *bulkCounts) (bson.D, error) {
	res, err := r.view.Update(ns, docdb.Update{
		Filter: op.Filter, Sort: op.Sort, Change: op.UpdateMods, Multi: op.Multi, Upsert: op.Upsert,
	})
	matched, modified := int32(res.Matched), int32(res.Modified)
	counts.Matched, counts.Modified = counts.Matched+matched, counts.Modified+modified
	out := bson.D{{Key: "n", Value: matched}, {Key: "nModified", Value: modified}}
	if !res.Upserted.IsZero() {
		counts.Upserted++
		out[0].Value = int32(1)
		out = append(out, bson.E{Key: "upserted", Value: bson.D{{Key: "_id", Value: res.Upserted}}})
	}
	return out, err
}
