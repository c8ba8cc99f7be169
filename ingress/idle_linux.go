package ingress

import (
	"os"
	"syscall"
	"time"
)

// idle waits for idle moments, on an eventfd that the Go runtime polls together
// with the network.
type idle struct {
	file *os.File
	raw  syscall.RawConn
	poll func(fd uintptr) bool // readable, bound once
	set  bool
}

func newIdle() (*idle, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("eventfd2", errno)
	}
	i := &idle{file: os.NewFile(fd, "eventfd")}
	var err error
	i.raw, err = i.file.SyscallConn()
	i.poll = i.readable
	return i, err
}

// wait makes the file readable and waits until the runtime has found out, which
// is when a processor has nothing else to do. After close it returns at once. It
// must not be called by two goroutines at the same time.
func (i *idle) wait() {
	i.set = false
	_ = i.raw.Read(i.poll) // fails only when closed
}

// readable is asked before the goroutine is parked and when it was woken. A plain
// read would return without a poll, as the file is readable before.
func (i *idle) readable(fd uintptr) bool {
	if !i.set {
		i.set = true
		_, _ = syscall.Write(int(fd), one[:]) // of an eventfd that is open, cannot fail
		return false
	}
	var count [8]byte
	_, _ = syscall.Read(int(fd), count[:]) // as little
	return true
}

// rest gives a processor time for takeOver.
func (i *idle) rest() {
	_ = i.file.SetReadDeadline(time.Now().Add(takeOver)) // fails only when closed, as the next two
	_ = i.raw.Read(func(uintptr) bool { return false })
	_ = i.file.SetReadDeadline(time.Time{})
}

func (i *idle) close() error { return i.file.Close() }

// one is what is added to the counter: above zero in either byte order.
var one = [8]byte{1}
