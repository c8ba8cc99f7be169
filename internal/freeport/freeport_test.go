package freeport

import (
	"net"
	"testing"
)

// TestAddress: no address is returned twice or while it is in use, and each can be listened on.
func TestAddress(t *testing.T) {
	seen := make(map[string]bool)
	for range 200 {
		a := Address(t)
		l, err := net.Listen("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; seen[a] || port < first || port >= first+count { //nolint:forcetypeassert // it is
			t.Errorf("%s was returned before, or is out of the range", a)
		}
		seen[a] = true
		_ = l.Close() // the test ends without it
	}
}
