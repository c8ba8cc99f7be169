package mongotest

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

const (
	maxCursors     = 10_000
	firstBatchSize = 101 // by default
)

// cursors are the open cursors of a node.
type cursors struct {
	mu sync.Mutex
	by map[int64]*cursor
}

// A cursor is the rest of a result. It is used by one request at a time.
type cursor struct {
	ns     string
	docs   []bson.Raw
	stream *changeStream // for results that go on; else nil
}

func (c *cursors) add(cur *cursor) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.by) >= maxCursors {
		return 0, failf(docdb.OutOfDiskSpace, "more than %d cursors are open", maxCursors)
	}
	if c.by == nil {
		c.by = map[int64]*cursor{}
	}
	id := rand.Int64()
	for id == 0 || c.by[id] != nil {
		id = rand.Int64()
	}
	c.by[id] = cur
	return id, nil
}

// take returns the cursor and removes it, so that no other caller uses it.
func (c *cursors) take(id int64) *cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur := c.by[id]
	delete(c.by, id)
	return cur
}

// takeOf does so if the cursor is of the namespace.
func (c *cursors) takeOf(id int64, ns string) *cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur := c.by[id]
	if cur == nil || cur.ns != ns {
		return nil
	}
	delete(c.by, id)
	return cur
}

// put brings back a cursor that was taken.
func (c *cursors) put(id int64, cur *cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[id] = cur
}

// next splits off a batch of up to size documents, and of as many bytes as a reply
// takes.
func (c *cursor) next(size int64) []bson.Raw {
	n, bytes := 0, 0
	for n < len(c.docs) && int64(n) < size {
		if bytes += len(c.docs[n]); n > 0 && bytes > wire.MaxDocumentSize {
			break
		}
		n++
	}
	batch := c.docs[:n]
	c.docs = c.docs[n:]
	return batch
}

// firstBatch returns the reply with the first documents of a result. The rest is left for
// getMore, unless single is set: then no cursor is opened.
func (r *request) firstBatch(ns string, docs []bson.Raw, stream *changeStream, single bool) (bson.D, error) {
	var o struct {
		BatchSize *int64 `bson:"batchSize"`
		Cursor    struct {
			BatchSize *int64 `bson:"batchSize"`
		} `bson:"cursor"`
	}
	if err := r.decode(&o); err != nil {
		return nil, err
	}
	size := int64(firstBatchSize)
	for _, given := range []*int64{o.BatchSize, o.Cursor.BatchSize} {
		if given != nil {
			size = *given
		}
	}
	if size < 0 {
		return nil, failf(docdb.BadValue, "BatchSize is %d, must not be negative", size)
	}
	cur := &cursor{ns: ns, docs: docs, stream: stream}
	batch, id := cur.next(size), int64(0)
	if (len(cur.docs) > 0 || stream != nil) && !single {
		var err error
		if id, err = r.node.cursors.add(cur); err != nil {
			return nil, err
		}
	}
	return cursorReply("firstBatch", cur, id, batch), nil
}

func cursorReply(batchName string, cur *cursor, id int64, batch []bson.Raw) bson.D {
	if batch == nil {
		batch = []bson.Raw{}
	}
	doc := bson.D{{Key: batchName, Value: batch}, {Key: "id", Value: id}, {Key: "ns", Value: cur.ns}}
	if cur.stream != nil {
		doc = append(doc, bson.E{Key: "postBatchResumeToken", Value: resumeToken(cur.stream.at)})
	}
	return bson.D{{Key: "cursor", Value: doc}}
}

func runGetMore(r *request) (bson.D, error) {
	var cmd struct {
		ID         int64  `bson:"getMore"`
		Collection string `bson:"collection"`
		BatchSize  int64  `bson:"batchSize"`
		MaxTimeMS  *int64 `bson:"maxTimeMS"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	cur := r.node.cursors.takeOf(cmd.ID, r.db+"."+cmd.Collection)
	if cur == nil {
		return nil, failf(codeCursorNotFound, "cursor id %d not found", cmd.ID)
	}
	if p := r.node.points.hitGetMore(); p != nil {
		if p.CloseConnection {
			return nil, errClose
		}
		return nil, r.afterCursor(p, cur)
	}
	size := cmd.BatchSize
	if size <= 0 {
		size = int64(len(cur.docs)) + wire.MaxBatch
	}
	if cur.stream != nil {
		wait := time.Second
		if cmd.MaxTimeMS != nil {
			wait = milliseconds(*cmd.MaxTimeMS)
		}
		if err := r.follow(cur, wait); err != nil {
			return nil, err
		}
	}
	batch := cur.next(size)
	if len(cur.docs) == 0 && cur.stream == nil {
		cmd.ID = 0
	} else {
		r.node.cursors.put(cmd.ID, cur)
	}
	return cursorReply("nextBatch", cur, cmd.ID, batch), nil
}

// afterCursor is the error of a getMore that has lost its cursor.
func (r *request) afterCursor(p *failData, cur *cursor) error {
	e := p.error(p.ErrorCode, afterCursorPoint)
	if p.ErrorLabels == nil && cur.stream != nil && isResumable(e.code) {
		e.labels = append(r.labelsOf(e.code), labelResumable)
	}
	return e
}

func runKillCursors(r *request) (bson.D, error) {
	var cmd struct {
		Cursors []int64 `bson:"cursors"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	killed, missing := []int64{}, []int64{}
	for _, id := range cmd.Cursors {
		if r.node.cursors.take(id) == nil {
			missing = append(missing, id)
		} else {
			killed = append(killed, id)
		}
	}
	return bson.D{
		{Key: "cursorsKilled", Value: killed},
		{Key: "cursorsNotFound", Value: missing},
		{Key: "cursorsAlive", Value: bson.A{}},
		{Key: "cursorsUnknown", Value: bson.A{}},
	}, nil
}
