// Package docs has the code of the documents, so that it is compiled, and tests that run
// the documents.
package docs
