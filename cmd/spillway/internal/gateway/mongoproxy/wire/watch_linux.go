package wire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed90641741/spillway/internal/netconn"
)

// HungUp reports whether the other side of a connection has closed it. It reads
// nothing.
func HungUp(c net.Conn) bool {
	state, ok := poll(c, unix.POLLRDHUP)
	return ok && state&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// full reports whether a connection takes no more bytes now.
func full(c net.Conn) bool {
	state, ok := poll(c, unix.POLLOUT)
	return ok && state&unix.POLLOUT == 0
}

// poll asks the kernel for the state of a connection, if that can be asked.
func poll(c net.Conn, events int16) (state int16, ok bool) {
	s, ok := netconn.Find[syscall.Conn](c)
	if !ok {
		return 0, false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, false
	}
	look := []unix.PollFd{{Events: events}}
	if failed := raw.Control(func(fd uintptr) {
		look[0].Fd = int32(fd)
		_, err = unix.Poll(look, 0)
	}); failed != nil || err != nil {
		return 0, false
	}
	return look[0].Revents, true
}
