package mongotest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
)

// The fail points.
const (
	failCommandPoint = "failCommand"

	// A retryable write on a primary: before it commits with an error, else after it.
	transactionalWritePoint = "onPrimaryTransactionalWrite"

	// A getMore that has its cursor already, which is lost.
	afterCursorPoint = "failGetMoreAfterCursorCheckout"
)

// failPoints are the fail points of a node, by their names.
type failPoints struct {
	mu      sync.Mutex
	command failPoint
	write   failPoint
	getMore failPoint
}

// A failPoint is guarded by the lock of the failPoints.
type failPoint struct {
	mode    failMode
	data    *failData
	entered int64 // how often it was hit
}

func (f *failPoints) named(name string) *failPoint {
	switch name {
	case failCommandPoint:
		return &f.command
	case transactionalWritePoint:
		return &f.write
	case afterCursorPoint:
		return &f.getMore
	default:
		return nil
	}
}

// failMode says which of the commands that match are hit. It counts down.
type failMode struct {
	on    bool
	skip  int64   // so many first that are not hit
	times int64   // so many that are hit, without end if negative
	share float64 // of those that are hit
}

// failData is the data of the fail points, as in MongoDB.
type failData struct {
	FailCommands      []string  `bson:"failCommands"`
	FailAllCommands   bool      `bson:"failAllCommands"`
	ErrorCode         int32     `bson:"errorCode"`
	ErrorLabels       *[]string `bson:"errorLabels"`
	CloseConnection   bool      `bson:"closeConnection"`
	BlockConnection   bool      `bson:"blockConnection"`
	BlockTimeMS       int64     `bson:"blockTimeMS"`
	AppName           string    `bson:"appName"`
	Namespace         string    `bson:"namespace"`
	WriteConcernError bson.Raw  `bson:"writeConcernError"`

	BeforeCommit int32 `bson:"failBeforeCommitExceptionCode"` // of onPrimaryTransactionalWrite
}

// labels returns the labels for the error; nil for the labels that belong to its code.
func (p *failData) labels() []string {
	if p.ErrorLabels == nil {
		return nil
	}
	return append([]string{}, *p.ErrorLabels...)
}

func (p *failData) matches(r *request) bool {
	fails := p.CloseConnection || p.BlockConnection || p.ErrorCode != 0
	return r.name != "configureFailPoint" &&
		(p.FailAllCommands || slices.Contains(p.FailCommands, r.name)) &&
		(p.AppName == "" || p.AppName == r.appName()) &&
		(p.Namespace == "" || p.Namespace == r.db+"."+r.collection()) &&
		(fails || len(p.WriteConcernError) == 0 || commands[r.name].where == primary)
}

// appName is the application's name, which the first hello of a connection brings.
func (r *request) appName() string {
	if name, ok := r.body.Lookup("client", "application", "name").StringValueOK(); ok && !r.conn.client.greeted {
		return name
	}
	return r.conn.client.appName
}

// hit returns what failCommand does to a request; nil for nothing.
func (f *failPoints) hit(r *request) *failData {
	return f.hitIf(&f.command, func(p *failData) bool { return p.matches(r) })
}

// hitWrite returns what onPrimaryTransactionalWrite does to a retryable write.
func (f *failPoints) hitWrite() *failData {
	return f.hitIf(&f.write, func(*failData) bool { return true })
}

// hitGetMore returns what failGetMoreAfterCursorCheckout does to a getMore.
func (f *failPoints) hitGetMore() *failData {
	return f.hitIf(&f.getMore, func(*failData) bool { return true })
}

func (f *failPoints) hitIf(p *failPoint, matches func(*failData) bool) *failData {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !p.mode.on || !matches(p.data) || !p.mode.take() {
		return nil
	}
	p.entered++
	return p.data
}

func (m *failMode) take() bool {
	if m.skip > 0 {
		m.skip--
		return false
	}
	if m.times == 0 || m.share < 1 && rand.Float64() >= m.share {
		return false
	}
	m.times-- // from below zero it never comes to zero
	return true
}

// parseMode reads the mode of a fail point.
func parseMode(v bson.RawValue) (failMode, error) {
	if word, ok := v.StringValueOK(); ok && (word == "off" || word == "alwaysOn") {
		return failMode{on: word == "alwaysOn", times: -1, share: 1}, nil
	}
	doc, _ := v.DocumentOK()
	if n, ok := doc.Lookup("times").AsInt64OK(); ok && n >= 0 {
		return failMode{on: true, times: n, share: 1}, nil
	}
	if n, ok := doc.Lookup("skip").AsInt64OK(); ok && n >= 0 {
		return failMode{on: true, skip: n, times: -1, share: 1}, nil
	}
	if p, ok := doc.Lookup("activationProbability").AsFloat64OK(); ok && p >= 0 && p <= 1 {
		return failMode{on: true, times: -1, share: p}, nil
	}
	return failMode{}, failf(docdb.BadValue,
		"the mode of a fail point must be off, alwaysOn, {times: n}, {skip: n} or {activationProbability: 0 to 1}")
}

func runConfigureFailPoint(r *request) (bson.D, error) {
	var cmd struct {
		Name string        `bson:"configureFailPoint"`
		Mode bson.RawValue `bson:"mode"`
		Data failData      `bson:"data"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	if cmd.Name == transactionalWritePoint {
		cmd.Data.CloseConnection = r.body.Lookup("data", "closeConnection").IsZero() || cmd.Data.CloseConnection
	}
	point, err := r.failPoint(cmd.Name)
	if err != nil {
		return nil, err
	}
	mode, err := parseMode(cmd.Mode)
	if err != nil {
		return nil, err
	}
	if cmd.Data.BlockTimeMS < 0 || cmd.Data.BlockTimeMS > time.Hour.Milliseconds() {
		return nil, failf(docdb.BadValue, "blockTimeMS is %d, must be 0 to an hour", cmd.Data.BlockTimeMS)
	}
	f := &r.node.points
	f.mu.Lock()
	defer f.mu.Unlock()
	point.mode, point.data = mode, &cmd.Data
	return bson.D{{Key: "count", Value: point.entered}}, nil
}

func (r *request) failPoint(name string) (*failPoint, error) {
	if r.db != "admin" {
		return nil, failf(codeUnauthorized, "%s may only be run against the admin database.", r.name)
	}
	point := r.node.points.named(name)
	if point == nil {
		return nil, failf(docdb.BadValue, "unknown fail point %q, must be %s, %s or %s",
			name, failCommandPoint, transactionalWritePoint, afterCursorPoint)
	}
	return point, nil
}
