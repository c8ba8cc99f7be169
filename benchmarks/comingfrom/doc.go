// Package comingfrom has the programs of the pages in docs/coming-from that are about libraries which the benchmarks compare with. A
// test runs them, and compares the pages with them.
package comingfrom
