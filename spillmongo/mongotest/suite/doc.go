// Package suite tests package spillmongo with the server of package mongotest: the unified tests and
// the prose tests of MongoDB's specifications, servers of each topology, and sessions.
package suite
