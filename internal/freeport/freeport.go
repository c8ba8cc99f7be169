// Package freeport finds addresses for tests whose server another process starts, or whose
// server stops and starts again.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The range is below the ports that systems assign to clients and to listeners on port 0 (from
// 32768 on Linux, from 49152 elsewhere).
const first, count = 20_000, 10_000

// given contains the ports that this process has returned.
var given sync.Map

// Address returns an address of the loopback network on which nothing listens, and which this
// process has not returned before. No other test gets the port by chance while a server is
// stopped, because the system assigns ports of another range. The port of a closed listener has
// no such guarantee. For an address that always rejects connections, use 127.0.0.1:1.
func Address(tb testing.TB) string {
	tb.Helper()
	for range 1000 {
		port := first + rand.IntN(count)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // another process has it
		}
		_ = l.Close() // an error does not matter: the address was free
		if _, taken := given.LoadOrStore(port, true); !taken {
			return address
		}
	}
	tb.Fatal("no port is free")
	return ""
}
