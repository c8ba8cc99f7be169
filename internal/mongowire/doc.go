// Package mongowire knows how messages of MongoDB's wire protocol and the documents
// in them are laid out in bytes. It has no types for what they mean: the server to
// test with (spillmongo/mongotest) and the proxy (cmd/spillway) have their own, and
// share what must not differ.
//
// All of it comes from outside. A length is compared with the bytes that are there
// before anybody follows it, documents are nested at most [MaxDepth] deep, nothing is
// allocated by a length that a peer claims, and nothing panics.
//
// Sources: the MongoDB wire protocol (OP_MSG, OP_COMPRESSED, OP_QUERY and OP_REPLY),
// and bsonspec.org, version 1.1.
package mongowire
