//go:build !unix

package wire

import (
	"net"
	"syscall"
)

func rawOf(net.Conn) syscall.RawConn { return nil }

func (l *Link) tryRead(uintptr) bool { return true }
