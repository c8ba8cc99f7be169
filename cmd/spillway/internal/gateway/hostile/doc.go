// Package hostile puts hostile, slow and broken clients before the proxy, one kind after
// the other, each together with an honest client, and measures what that client gets. The tests
// are the package: nothing else is in it.
//
// The proxy and the upstreams are processes of their own, so that what attackers spend is
// not spent by the proxy, and the memory, the goroutines and the files that are left can
// be counted. "go test" runs each attack for a few seconds, "make hostile" for longer, and
// at last all of them at once; both print a table.
package hostile
