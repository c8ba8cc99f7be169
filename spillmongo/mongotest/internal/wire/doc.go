// Package wire reads and writes messages of MongoDB's wire protocol, as a server
// does: OP_MSG with its checksum and its document sequences, OP_QUERY for the
// handshake of old clients, and OP_COMPRESSED around either.
//
// # What an untrusted client can do
//
// Everything comes from outside. A message is at most [MaxMessageSize] long, and
// memory is taken as its bytes arrive, never by the length that it claims. A
// compressed message is expanded up to the size that it announces, at most the
// same. Documents are checked once, to their last byte and at most [MaxDepth]
// deep, before anybody looks into them, so that no reader of package bson
// can meet a length that lies. Document sequences hold at most [MaxBatch] documents
// altogether. A message that breaks a rule is an error, and nothing panics.
//
// Source: the MongoDB wire protocol (OP_MSG, OP_COMPRESSED and OP_QUERY), and
// bsonspec.org, version 1.1.
package wire
