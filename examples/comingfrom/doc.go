// Package comingfrom has the programs of the pages in docs/coming-from: one with another
// library, and the same one with Spillway. A test runs both, and compares the pages with them.
package comingfrom
