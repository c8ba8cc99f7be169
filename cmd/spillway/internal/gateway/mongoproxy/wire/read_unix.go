//go:build unix

package wire

import (
	"errors"
	"net"
	"syscall"
)

// rawOf returns the raw connection, which can be waited for without a buffer, or nil.
func rawOf(c net.Conn) syscall.RawConn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// tryRead reads without waiting. If no data has arrived, it releases the buffer and reports
// false.
func (l *Link) tryRead(fd uintptr) bool {
	l.take()
	for {
		l.n, l.err = syscall.Read(int(fd), l.buf)
		switch {
		case errors.Is(l.err, syscall.EINTR):
		case errors.Is(l.err, syscall.EAGAIN):
			l.Give()
			return false
		default:
			return true
		}
	}
}
