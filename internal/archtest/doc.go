// Package archtest holds the architecture of the project as a test. It has no
// code outside its tests; `go test ./internal/archtest` asks whether
//
//   - every package has a row in the table, and every row a package;
//   - imports point strictly down the levels, so that packages of one level
//     never import one another;
//   - the root module uses the standard library only, and an adapter no more
//     than the library that it adapts;
//   - words and policies read no clock, start no goroutine and wait for nothing,
//     and nothing below the edges logs;
//   - tests sleep in synctest bubbles only;
//   - all modules are in go.work and name the same version of Go;
//   - code, comments and file names keep to the glossary of CONTRIBUTING.md;
//   - files are formatted, and no line is longer than the linters allow;
//   - links in documents lead to files.
//
// A module other than the root is one row, whatever packages it is made of.
//
// Tests reach a little further than the code they test. All of them may import
// the test kits. Those in a package of their own (package throttle_test) may
// also import other packages of the same level, since an example of one policy
// is often clearer next to its neighbour. Tests within the package keep
// to the rule of the package.
//
// The source is parsed rather than asked of `go list`: that sees files of every
// build constraint, needs no module to be downloaded, and lets `go test` know
// which files its cached answer depends on.
package archtest
