package mongotest

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
)

// A changeStream is a place in the history of the data.
type changeStream struct {
	at     uint32
	ns     string // a collection, a database, or empty for all
	stages []bson.Raw
}

func (r *request) openChangeStream(ns string, arg bson.RawValue, stages []bson.Raw) (*changeStream, error) {
	if r.node.deployment.config.Topology == Standalone {
		return nil, failf(40573, "The $changeStream stage is only supported on replica sets")
	}
	var o struct {
		All         bool          `bson:"allChangesForCluster"`
		ResumeAfter bson.RawValue `bson:"resumeAfter"`
		StartAfter  bson.RawValue `bson:"startAfter"`
		StartAt     bson.RawValue `bson:"startAtOperationTime"`
	}
	doc, _ := arg.DocumentOK()
	if err := bson.Unmarshal(doc, &o); err != nil {
		return nil, failf(docdb.FailedToParse, "%v", err)
	}
	if ns = strings.TrimSuffix(ns, ".$cmd.aggregate"); o.All {
		ns = ""
	}
	s := &changeStream{at: r.node.deployment.db.Now(), ns: ns}
	for _, stage := range stages {
		s.stages = append(s.stages, append(bson.Raw(nil), stage...))
	}
	if _, err := r.view.Aggregate(r.db, nil, s.stages); err != nil {
		return nil, err
	}
	for _, token := range []bson.RawValue{o.ResumeAfter, o.StartAfter} {
		if !token.IsZero() {
			var err error
			s.at, err = parseResumeToken(token)
			return s, err
		}
	}
	if _, i, ok := o.StartAt.TimestampOK(); ok && i > 0 {
		s.at = i - 1 // the operationTime of a reply is one after what it has seen
	}
	return s, nil
}

// follow adds the changes since the last time to the documents of the cursor. It waits
// for one if absent.
func (r *request) follow(cur *cursor, wait time.Duration) error {
	s := cur.stream
	end := time.Now().Add(wait)
	for len(cur.docs) == 0 {
		changes, changed, err := r.node.deployment.db.Since(s.at, s.ns)
		if err != nil {
			return err
		}
		if cur.docs, err = s.events(r, changes); err != nil || len(cur.docs) > 0 {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if !r.conn.wait(left, changed) {
			return errClose
		}
	}
	return nil
}

// events are the documents that report changes.
func (s *changeStream) events(r *request, changes []docdb.Change) ([]bson.Raw, error) {
	var docs []bson.Raw
	for _, c := range changes {
		s.at = c.At
		doc, err := bson.Marshal(event(c))
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return r.view.Aggregate(r.db, docs, s.stages)
}

func event(c docdb.Change) bson.D {
	name, coll, _ := strings.Cut(c.Namespace, ".")
	doc := bson.D{
		{Key: "_id", Value: resumeToken(c.At)},
		{Key: "operationType", Value: c.Operation},
		{Key: "clusterTime", Value: bson.Timestamp{T: uint32(time.Now().Unix()), I: c.At}},
		{Key: "ns", Value: bson.D{{Key: "db", Value: name}, {Key: "coll", Value: coll}}},
	}
	if !c.ID.IsZero() {
		doc = append(doc, bson.E{Key: "documentKey", Value: bson.D{{Key: "_id", Value: c.ID}}})
	}
	if c.Document != nil {
		doc = append(doc, bson.E{Key: "fullDocument", Value: c.Document})
	}
	return doc
}
