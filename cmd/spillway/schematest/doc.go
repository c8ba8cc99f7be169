// Package schematest tests that the structs of files, their JSON schemas, and the files in documents and examples
// agree. It is a separate module, so that the program does not require the libraries for schemas.
//
// A schema is made from the struct: go test ./cmd/spillway/schematest -update writes all of them.
package schematest
