//go:build !unix

package mongoproxy

import (
	"net"
	"syscall"
)

func rawOf(net.Conn) syscall.RawConn { return nil }

func (l *link) tryRead(uintptr) bool { return true }
