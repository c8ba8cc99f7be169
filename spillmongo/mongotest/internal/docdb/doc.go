// Package docdb is a small database of documents in memory, with as much of
// MongoDB's query and update language as tests need: enough to see which
// commands took effect, and how often.
//
// A [View] is how one client sees a [DB]: as it is, or with the writes of a
// transaction on top, which is invisible to others before [Txn.Commit]. Inside a
// transaction others' writes are seen once they are there (read committed);
// two open transactions that write one document conflict.
//
// Documents never change once they are stored, so what is returned is shared and
// must not be written to. All documents that go in must be well formed. What the
// package does not know it rejects, with the error code that MongoDB uses, and never
// passes over in silence.
package docdb
