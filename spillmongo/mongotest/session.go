package mongotest

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
)

// maxSessions bounds the sessions that have ever had a numbered command and were not
// ended.
const maxSessions = 100_000

// sessions are the sessions of all nodes, by the id of the session.
type sessions struct {
	mu sync.Mutex
	by map[string]*session
}

// A session knows the latest retryable write or transaction of a client. A goroutine that
// works in it holds its lock.
type session struct {
	mu     sync.Mutex
	number int64 // of the latest retryable write or transaction
	state  txnState
	txn    *docdb.Txn // while the state is inProgress
	done   bson.D     // the reply to the retryable write; nil if there is none
}

type txnState int

const (
	noTransaction txnState = iota
	inProgress
	committed
	aborted
)

// get returns the session with the id, or makes it.
func (s *sessions) get(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.by[id]; found != nil {
		return found, nil
	}
	if len(s.by) >= maxSessions {
		return nil, failf(codeTooManyLogicalSessions, "more than %d sessions", maxSessions)
	}
	if s.by == nil {
		s.by = map[string]*session{}
	}
	made := &session{number: -1}
	s.by[id] = made
	return made, nil
}

// end forgets sessions, and aborts their transactions; all if there are no ids.
func (s *sessions) end(ids ...string) {
	s.mu.Lock()
	var ended []*session
	for _, id := range ids {
		if found := s.by[id]; found != nil {
			ended = append(ended, found)
			delete(s.by, id)
		}
	}
	s.mu.Unlock()
	for _, e := range ended {
		e.mu.Lock()
		e.abort()
		e.mu.Unlock()
	}
}

func (s *sessions) ids() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.by {
		out = append(out, id)
	}
	return out
}

// abort ends the transaction if there is one in progress.
func (s *session) abort() {
	if s.state == inProgress {
		s.txn.Abort()
		s.txn, s.state = nil, aborted
	}
}

// numbers are the fields of a command that say which transaction it belongs to.
type numbers struct {
	Lsid struct {
		ID bson.RawValue `bson:"id"`
	} `bson:"lsid"`
	TxnNumber        *int64 `bson:"txnNumber"`
	Autocommit       *bool  `bson:"autocommit"`
	StartTransaction bool   `bson:"startTransaction"`
}

// inSession runs a command that may be a retryable write, or part of a transaction.
func (r *request) inSession(cmd command) (bson.D, error) {
	d := r.node.deployment
	r.view = d.db.View()
	if r.body.Lookup("txnNumber").IsZero() {
		if cmd.ends {
			return nil, failf(codeNoSuchTransaction, "%s must be run in a transaction", r.name)
		}
		return cmd.run(r)
	}
	var n numbers
	if err := r.decode(&n); err != nil {
		return nil, err
	}
	if d.config.Topology == Standalone {
		return nil, failf(codeIllegalOperation, "Transaction numbers are only allowed on a replica set member or mongos")
	}
	if n.TxnNumber == nil || n.Lsid.ID.IsZero() {
		return nil, failf(docdb.InvalidOptions, "Transaction number requires a session ID to also be specified")
	}
	s, err := d.sessions.get(string(n.Lsid.ID.Value))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.session = s
	if *n.TxnNumber < s.number {
		return nil, failf(codeTransactionTooOld, "Cannot start transaction %d on session because a newer transaction %d has already started.",
			*n.TxnNumber, s.number)
	}
	if n.Autocommit == nil {
		return r.retryable(cmd, *n.TxnNumber)
	}
	return r.transactional(cmd, *n.TxnNumber, n.StartTransaction)
}

// retryable runs a write once for each number. Sent again it gets the same reply.
func (r *request) retryable(cmd command, number int64) (bson.D, error) {
	s := r.session
	if number == s.number && s.done != nil {
		r.node.count(func(s *Stats) { s.Replayed++ })
		return append(bson.D(nil), s.done...), nil
	}
	if number == s.number && s.state != noTransaction {
		return nil, failf(docdb.InvalidOptions, "the number %d belongs to a transaction", number)
	}
	p := r.node.points.hitWrite()
	if p != nil && p.BeforeCommit != 0 {
		return nil, p.error(p.BeforeCommit, transactionalWritePoint)
	}
	s.begin(number)
	doc, err := cmd.run(r)
	if err == nil {
		s.done = append(bson.D(nil), doc...)
	}
	if p != nil && p.CloseConnection {
		return nil, errClose
	}
	return doc, err
}

// begin takes up a new number.
func (s *session) begin(number int64) {
	s.abort()
	s.number, s.state, s.txn, s.done = number, noTransaction, nil, nil
}

// transactional runs a command of a transaction.
func (r *request) transactional(cmd command, number int64, start bool) (bson.D, error) {
	s := r.session
	switch {
	case start && (number > s.number || s.state == noTransaction && s.done == nil):
		s.begin(number)
		s.state, s.txn = inProgress, r.node.deployment.db.Begin()
	case start:
		return nil, failf(50911, "Cannot start a transaction at given transaction number %d; a transaction with the same number is in progress or has ended", number)
	case number > s.number:
		return nil, failf(codeNoSuchTransaction, "Given transaction number %d does not match any in-progress transactions.", number)
	}
	if cmd.ends {
		return cmd.run(r)
	}
	if s.state == committed {
		return nil, failf(codeTransactionCommitted, "Transaction with { txnNumber: %d } has been committed.", number)
	}
	if s.state != inProgress {
		return nil, failf(codeNoSuchTransaction, "Transaction with { txnNumber: %d } has been aborted.", number)
	}
	r.view = s.txn.View()
	doc, err := cmd.run(r)
	if err != nil || hasWriteErrors(doc) {
		s.abort()
	}
	if err == nil && r.process() == "mongos" {
		doc = append(doc, bson.E{Key: "recoveryToken", Value: bson.D{{Key: "recoveryShardId", Value: setName}}})
	}
	return doc, err
}

func hasWriteErrors(doc bson.D) bool {
	for _, e := range doc {
		n, _ := e.Value.(bson.RawValue)
		if e.Key == "writeErrors" || e.Key == "nErrors" && n.AsInt64() > 0 {
			return true
		}
	}
	return false
}

// runCommit commits the transaction. Sent again it says again that it is committed.
func runCommit(r *request) (bson.D, error) {
	s := r.session
	switch {
	case s == nil || s.state == noTransaction:
		return nil, failf(codeNoSuchTransaction, "there is no transaction")
	case s.state == committed:
		return bson.D{}, nil
	case s.state == aborted:
		return nil, failf(codeNoSuchTransaction, "Transaction with { txnNumber: %d } has been aborted.", s.number)
	}
	if err := s.txn.Commit(); err != nil {
		s.abort()
		return nil, err
	}
	s.txn, s.state = nil, committed
	return bson.D{}, nil
}

func runAbort(r *request) (bson.D, error) {
	s := r.session
	if s == nil || s.state != inProgress {
		return nil, failf(codeNoSuchTransaction, "there is no transaction in progress")
	}
	s.abort()
	return bson.D{}, nil
}

// runEndSessions forgets the sessions that the command lists.
func runEndSessions(r *request) (bson.D, error) {
	d := r.node.deployment
	list, ok := r.arg.ArrayOK()
	if r.name == "killAllSessions" || !ok {
		d.sessions.end(d.sessions.ids()...)
		return bson.D{}, nil
	}
	values, err := list.Values()
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if doc, ok := v.DocumentOK(); ok {
			d.sessions.end(string(doc.Lookup("id").Value))
		}
	}
	return bson.D{}, nil
}
