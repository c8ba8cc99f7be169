package mongotest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
)

// failPoints is the one fail point there is, failCommand.
type failPoints struct {
	mu      sync.Mutex
	mode    failMode
	data    *failCommand
	entered int64         // how often it was hit
	changed chan struct{} // closed at the next hit, if somebody waits
}

// failMode says which of the commands that match are hit. It counts down.
type failMode struct {
	on    bool
	skip  int64   // so many first that are not hit
	times int64   // so many that are hit, without end if negative
	share float64 // of those that are hit
}

// failCommand is the data of the fail point, as in MongoDB.
type failCommand struct {
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
}

// labels returns the labels for the error; nil for those that belong to its code.
func (p *failCommand) labels() []string {
	if p.ErrorLabels == nil {
		return nil
	}
	return append([]string{}, *p.ErrorLabels...)
}

func (p *failCommand) matches(r *request) bool {
	fails := p.CloseConnection || p.BlockConnection || p.ErrorCode != 0
	return r.name != "configureFailPoint" &&
		(p.FailAllCommands || slices.Contains(p.FailCommands, r.name)) &&
		(p.AppName == "" || p.AppName == r.conn.client.appName) &&
		(p.Namespace == "" || p.Namespace == r.db+"."+r.collection()) &&
		(fails || len(p.WriteConcernError) == 0 || commands[r.name].where == primary)
}

// hit returns what the fail point does to a request; nil for nothing.
func (f *failPoints) hit(r *request) *failCommand {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mode.on || !f.data.matches(r) || !f.mode.take() {
		return nil
	}
	f.entered++
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
	return f.data
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
		Data failCommand   `bson:"data"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	if err := r.knownFailPoint(cmd.Name); err != nil {
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
	f.mode, f.data = mode, &cmd.Data
	return bson.D{{Key: "count", Value: f.entered}}, nil
}

func (r *request) knownFailPoint(name string) error {
	if r.db != "admin" {
		return failf(codeUnauthorized, "%s may only be run against the admin database.", r.name)
	}
	if name != "failCommand" {
		return failf(docdb.BadValue, "the only fail point is failCommand, not %q", name)
	}
	return nil
}

func runWaitForFailPoint(r *request) (bson.D, error) {
	var cmd struct {
		Name         string `bson:"waitForFailPoint"`
		TimesEntered int64  `bson:"timesEntered"`
		MaxTimeMS    int64  `bson:"maxTimeMS"`
	}
	if err := r.decode(&cmd); err != nil {
		return nil, err
	}
	if err := r.knownFailPoint(cmd.Name); err != nil {
		return nil, err
	}
	end := time.Now().Add(milliseconds(cmd.MaxTimeMS))
	for {
		entered, changed := r.node.points.await()
		if entered >= cmd.TimesEntered {
			return bson.D{{Key: "count", Value: entered}}, nil
		}
		left := time.Until(end)
		if left <= 0 {
			return nil, failf(codeMaxTimeMSExpired, "operation exceeded time limit")
		}
		if !r.conn.wait(left, changed) {
			return nil, errClose
		}
	}
}

// await returns how often the fail point was hit, and a channel that the next hit
// closes.
func (f *failPoints) await() (int64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.entered, f.changed
}
