package mongotest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

func runFind(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	var cmd struct {
		Filter      bson.Raw `bson:"filter"`
		Sort        bson.Raw `bson:"sort"`
		Projection  bson.Raw `bson:"projection"`
		Skip        int64    `bson:"skip"`
		Limit       int64    `bson:"limit"`
		SingleBatch bool     `bson:"singleBatch"`
		Collation   bson.Raw `bson:"collation"`
		Tailable    bool     `bson:"tailable"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	if err := unsupported(bson.RawValue{}, cmd.Collation); err != nil {
		return nil, err
	}
	if cmd.Tailable {
		return nil, failf(docdb.BadValue, "error processing query: tailable cursor requested on non capped collection")
	}
	filter, err := r.sleepWhere(cmd.Filter)
	if err != nil {
		return nil, err
	}
	docs, err := r.view.Find(ns, docdb.Query{
		Filter: filter, Sort: cmd.Sort, Projection: cmd.Projection, Skip: cmd.Skip, Limit: cmd.Limit,
	})
	if err != nil {
		return nil, err
	}
	return r.firstBatch(ns, docs, nil, cmd.SingleBatch)
}

var sleep = regexp.MustCompile(`^\s*function\s*\(\s*\)\s*\{\s*sleep\(\s*(\d{1,6})\s*\);?\s*return true;?\s*\}\s*$`)

// sleepWhere does the one thing that $where is good for in tests: it sleeps. It returns
// the filter without it.
func (r *request) sleepWhere(filter bson.Raw) (bson.Raw, error) {
	where := filter.Lookup("$where")
	if where.IsZero() {
		return filter, nil
	}
	code, ok := where.StringValueOK()
	if !ok {
		code, _ = where.JavaScriptOK()
	}
	m := sleep.FindStringSubmatch(code)
	if m == nil {
		return nil, failf(docdb.CommandNotSupported, "$where must be function() { sleep(milliseconds); return true; }")
	}
	ms, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || !r.conn.wait(milliseconds(ms), nil) {
		return nil, errClose
	}
	rest := bson.D{}
	for k, v := range wire.Elements(filter) {
		if k != "$where" {
			rest = append(rest, bson.E{Key: k, Value: v})
		}
	}
	return bson.Marshal(rest)
}

func runCount(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	var cmd struct {
		Query bson.Raw `bson:"query"`
		Skip  int64    `bson:"skip"`
		Limit int64    `bson:"limit"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	docs, err := r.view.Find(ns, docdb.Query{Filter: cmd.Query, Skip: cmd.Skip, Limit: max(cmd.Limit, -cmd.Limit)})
	return bson.D{{Key: "n", Value: int32(len(docs))}}, err
}

func runDistinct(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	var cmd struct {
		Key   string   `bson:"key"`
		Query bson.Raw `bson:"query"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	docs, err := r.view.Find(ns, docdb.Query{Filter: cmd.Query})
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "values", Value: docdb.Distinct(docs, cmd.Key)}}, nil
}

func runAggregate(r *request) (bson.D, error) {
	var cmd struct {
		Pipeline  []bson.Raw `bson:"pipeline"`
		Collation bson.Raw   `bson:"collation"`
		Explain   bool       `bson:"explain"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	if err := unsupported(bson.RawValue{}, cmd.Collation); err != nil {
		return nil, err
	}
	if cmd.Explain {
		return nil, failf(docdb.CommandNotSupported, "explain is not supported")
	}
	if err := r.writesOut(cmd.Pipeline); err != nil {
		return nil, err
	}
	ns := r.db + ".$cmd.aggregate"
	if coll, ok := r.arg.StringValueOK(); ok {
		ns = r.db + "." + coll
	}
	docs, stages, stream, err := r.source(ns, cmd.Pipeline)
	if err != nil {
		return nil, err
	}
	if docs, err = r.view.Aggregate(r.db, docs, stages); err != nil {
		return nil, err
	}
	return r.firstBatch(ns, docs, stream, false)
}

// writesOut errs if the pipeline writes and the node may not.
func (r *request) writesOut(pipeline []bson.Raw) error {
	if len(pipeline) == 0 || r.node.deployment.writable(r.node) {
		return nil
	}
	last := pipeline[len(pipeline)-1]
	if last.Lookup("$out").IsZero() && last.Lookup("$merge").IsZero() {
		return nil
	}
	return failf(codeNotWritablePrimary, "not primary")
}

// source returns the documents that a pipeline begins with, and its other stages.
func (r *request) source(ns string, pipeline []bson.Raw) (docs, stages []bson.Raw, stream *changeStream, err error) {
	if len(pipeline) > 0 {
		if arg := pipeline[0].Lookup("$changeStream"); !arg.IsZero() {
			stream, err = r.openChangeStream(ns, arg, pipeline[1:])
			return nil, nil, stream, err
		}
		if !pipeline[0].Lookup("$listLocalSessions").IsZero() {
			docs, err = r.listLocalSessions()
			return docs, pipeline[1:], nil, err
		}
	}
	if r.arg.Type != bson.TypeString {
		return nil, nil, nil, failf(docdb.InvalidNamespace, "{aggregate: 1} is not valid for this pipeline; a collection is required.")
	}
	docs, err = r.view.Find(ns, docdb.Query{})
	return docs, pipeline, nil, err
}

// listLocalSessions returns a document for each session that is known, and one for
// that of the command.
func (r *request) listLocalSessions() ([]bson.Raw, error) {
	ids := []bson.RawValue{r.body.Lookup("lsid", "id")}
	var docs []bson.Raw
	for _, id := range ids {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.D{{Key: "id", Value: id}}}, {Key: "lastUse", Value: time.Now()}})
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// resumeToken is the place in the history, as clients hand it back.
func resumeToken(at uint32) bson.D { return bson.D{{Key: "_data", Value: fmt.Sprintf("%08x", at)}} }

func parseResumeToken(v bson.RawValue) (uint32, error) {
	doc, _ := v.DocumentOK()
	data, _ := doc.Lookup("_data").StringValueOK()
	at, err := strconv.ParseUint(strings.TrimSpace(data), 16, 32)
	if err != nil {
		return 0, failf(docdb.BadValue, "the resume token is not one of this server")
	}
	return uint32(at), nil
}
