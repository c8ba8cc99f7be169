package mongotest

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// A request is one command on its way through a node.
type request struct {
	conn    *conn
	node    *Node
	message *wire.Message
	name    string
	arg     bson.RawValue // of the name
	db      string
	body    bson.Raw
	session *session // of a retryable write or of a transaction; else nil
	view    docdb.View
	stream  bool            // more replies may follow this one
	told    topologyVersion // by the latest reply to hello
}

// newRequest returns the request for a message, or nil if it names no command.
func newRequest(c *conn, m *wire.Message) *request {
	r := &request{conn: c, node: c.node, message: m, body: m.Body}
	for r.name, r.arg = range wire.Elements(m.Body) {
		break
	}
	r.db = m.Database
	if !m.Legacy {
		r.db, _ = m.Body.Lookup("$db").StringValueOK()
	}
	if r.name == "" || r.db == "" {
		return nil
	}
	return r
}

// run takes the request through observer, limiter and fail points to its command. It
// returns false if the connection is to be closed without a reply.
func (r *request) run() (reply bson.Raw, ok bool) {
	r.observe()
	var doc bson.D
	err := r.admit()
	if err == nil {
		end := r.node.latencies.time(r.name)
		r.work()
		doc, err = r.attempt()
		end()
	}
	if errors.Is(err, errClose) {
		return nil, false
	}
	reply, merr := bson.Marshal(r.finish(doc, err))
	return reply, merr == nil
}

func (r *request) observe() {
	r.node.count(func(s *Stats) { s.Commands[r.countedName()]++ })
	if observe := r.node.deployment.config.Observe; observe != nil {
		observe(Command{
			Node:         r.node.index,
			ConnectionID: r.conn.id,
			RequestID:    r.message.RequestID,
			AppName:      r.conn.client.appName,
			Database:     r.db,
			Name:         r.name,
			Body:         r.body,
		})
	}
}

// countedName is the name under which a command is counted, so that unknown clients cannot
// make up names without end.
func (r *request) countedName() string {
	if _, known := commands[r.name]; known {
		return r.name
	}
	return "unknown"
}

// attempt runs the command unless a fail point forbids it.
func (r *request) attempt() (bson.D, error) {
	p := r.node.points.hit(r)
	if p == nil {
		return r.execute()
	}
	if err := r.strike(p); err != nil {
		return nil, err
	}
	doc, err := r.execute()
	if err == nil && len(p.WriteConcernError) > 0 {
		doc = append(doc, bson.E{Key: "writeConcernError", Value: p.WriteConcernError})
		if p.ErrorLabels != nil {
			doc = append(doc, bson.E{Key: "errorLabels", Value: p.labels()})
		}
	}
	return doc, err
}

// strike does what a fail point demands before the command runs, if it may run at all.
func (r *request) strike(p *failData) error {
	if p.BlockConnection && !r.conn.wait(time.Duration(p.BlockTimeMS)*time.Millisecond, nil) {
		return errClose
	}
	if p.CloseConnection || p.ErrorCode != 0 {
		r.node.count(func(s *Stats) { s.Failed++ })
	}
	switch {
	case p.CloseConnection:
		return errClose
	case p.ErrorCode != 0:
		return p.error(p.ErrorCode, failCommandPoint)
	}
	return nil
}

// error is the error with the code that a fail point sets.
func (p *failData) error(code int32, point string) *commandError {
	return &commandError{code: code, message: fmt.Sprintf("Failing command via '%s' failpoint", point), labels: p.labels()}
}

// execute runs the command.
func (r *request) execute() (bson.D, error) {
	cmd, known := commands[r.name]
	if !known {
		return nil, failf(codeCommandNotFound, "no such command: '%s'", r.name)
	}
	if !cmd.before && !r.authorized() {
		return nil, failf(codeUnauthorized, "command %s requires authentication", r.name)
	}
	if err := r.routed(cmd); err != nil {
		return nil, err
	}
	if !cmd.sessions {
		r.view = r.node.deployment.db.View()
		return cmd.run(r)
	}
	return r.inSession(cmd)
}

// routed reports why the node may not run the command, by its role in the replica
// set.
func (r *request) routed(cmd command) error {
	if r.node.deployment.writable(r.node) || r.conn.local() {
		return nil
	}
	switch cmd.where {
	case primary:
		return failf(codeNotWritablePrimary, "not primary")
	case reader:
		if mode, _ := r.body.Lookup("$readPreference", "mode").StringValueOK(); mode == "" || mode == "primary" {
			return failf(codeNotPrimaryNoSecondaryOk, "not primary and secondaryOk=false")
		}
	case anywhere:
	}
	return nil
}

// again waits for the next reply of a streaming command.
func (r *request) again() (reply bson.Raw, ok bool) {
	doc, err := r.attempt()
	if errors.Is(err, errClose) {
		return nil, false
	}
	reply, err = bson.Marshal(r.finish(doc, err))
	return reply, err == nil
}

// decode reads the command into v. A field of the wrong type is an error of the
// client.
func (r *request) decode(v any) error {
	if err := bson.Unmarshal(r.body, v); err != nil {
		return failf(docdb.TypeMismatch, "%v", err)
	}
	return nil
}

// ns is the namespace that the command is about.
func (r *request) ns() (string, error) {
	coll, ok := r.arg.StringValueOK()
	if !ok || coll == "" {
		return "", failf(docdb.InvalidNamespace, "collection name has invalid type or is empty")
	}
	return r.db + "." + coll, nil
}

// collection is the name of the collection that the command is about; empty if it is
// about none.
func (r *request) collection() string {
	if r.name == "getMore" {
		name, _ := r.body.Lookup("collection").StringValueOK()
		return name
	}
	name, _ := r.arg.StringValueOK()
	return name
}
