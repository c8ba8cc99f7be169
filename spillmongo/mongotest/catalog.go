package mongotest

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
)

func (r *request) data() *docdb.DB { return r.node.deployment.db }

func runCreate(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	for _, option := range []string{"capped", "viewOn", "timeseries", "clusteredIndex", "encryptedFields"} {
		if on, ok := r.body.Lookup(option).BooleanOK(); on || !ok && !r.body.Lookup(option).IsZero() {
			return nil, failf(docdb.CommandNotSupported, "collections with the option %s are not supported", option)
		}
	}
	return bson.D{}, r.data().Create(ns)
}

func runDrop(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	r.data().Drop(ns) // not to find it is no error since MongoDB 7.0
	return bson.D{{Key: "ns", Value: ns}}, nil
}

func runDropDatabase(r *request) (bson.D, error) {
	r.data().DropDatabase(r.db)
	return bson.D{{Key: "dropped", Value: r.db}}, nil
}

func runListDatabases(r *request) (bson.D, error) {
	var cmd struct {
		Filter bson.Raw `bson:"filter"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	total := int64(0)
	var docs []bson.Raw
	for _, size := range r.data().Databases() {
		doc, err := bson.Marshal(bson.D{
			{Key: "name", Value: size.Name},
			{Key: "sizeOnDisk", Value: int64(size.Bytes)},
			{Key: "empty", Value: false},
		})
		if err != nil {
			return nil, err
		}
		docs, total = append(docs, doc), total+int64(size.Bytes)
	}
	docs, err := docdb.Filter(docs, cmd.Filter)
	if err != nil {
		return nil, err
	}
	if docs == nil {
		docs = []bson.Raw{}
	}
	return bson.D{{Key: "databases", Value: docs}, {Key: "totalSize", Value: total}}, nil
}

func runListCollections(r *request) (bson.D, error) {
	var cmd struct {
		Filter bson.Raw `bson:"filter"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	var docs []bson.Raw
	for _, name := range r.data().Collections(r.db) {
		doc, err := bson.Marshal(bson.D{
			{Key: "name", Value: name},
			{Key: "type", Value: "collection"},
			{Key: "options", Value: bson.D{}},
			{Key: "info", Value: bson.D{{Key: "readOnly", Value: false}}},
		})
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	docs, err := docdb.Filter(docs, cmd.Filter)
	if err != nil {
		return nil, err
	}
	return r.firstBatch(r.db+".$cmd.listCollections", docs, nil, false)
}

func runCreateIndexes(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	specs, err := r.batch("indexes")
	if err != nil {
		return nil, err
	}
	var add []docdb.Index
	for _, spec := range specs {
		var ix struct {
			Name   string   `bson:"name"`
			Keys   bson.Raw `bson:"key"`
			Unique bool     `bson:"unique"`
		}
		if err := bson.Unmarshal(spec, &ix); err != nil || ix.Name == "" || len(ix.Keys) == 0 {
			return nil, failf(docdb.FailedToParse, "an index must have a name and a key")
		}
		add = append(add, docdb.Index{Name: ix.Name, Keys: ix.Keys, Unique: ix.Unique})
	}
	before, after, err := r.data().CreateIndexes(ns, add)
	return bson.D{{Key: "numIndexesBefore", Value: int32(before)}, {Key: "numIndexesAfter", Value: int32(after)}}, err
}

func runDropIndexes(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	was, err := r.data().DropIndexes(ns, r.body.Lookup("index"))
	return bson.D{{Key: "nIndexesWas", Value: int32(was)}}, err
}

func runListIndexes(r *request) (bson.D, error) {
	ns, err := r.ns()
	if err != nil {
		return nil, err
	}
	indexes, ok := r.data().Indexes(ns)
	if !ok {
		return nil, failf(docdb.NamespaceNotFound, "ns does not exist: %s", ns)
	}
	var docs []bson.Raw
	for _, ix := range indexes {
		spec := bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: ix.Keys}, {Key: "name", Value: ix.Name}}
		if ix.Unique {
			spec = append(spec, bson.E{Key: "unique", Value: true})
		}
		doc, err := bson.Marshal(spec)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return r.firstBatch(ns, docs, nil, false)
}
