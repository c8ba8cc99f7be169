package ingress

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// polled waits on an eventfd that the Go runtime polls together with the network. A processor
// polls when it has nothing else to run: TestPollsLast measures whether that is still so.
type polled struct {
	file *os.File
	raw  syscall.RawConn
	poll func(fd uintptr) bool // readable, bound once
	set  bool
}

func newPolled() (*polled, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("eventfd2", errno)
	}
	i := &polled{file: os.NewFile(fd, "eventfd")}
	i.poll = i.readable
	err := i.file.SetReadDeadline(time.Time{}) // fails if the runtime does not poll the file
	if err == nil {
		i.raw, err = i.file.SyscallConn()
	}
	if err != nil {
		return nil, errors.Join(err, i.file.Close())
	}
	return i, nil
}

// wait makes the file readable and waits until the runtime has found out.
func (i *polled) wait() {
	i.set = false
	_ = i.raw.Read(i.poll) // fails only when closed
}

// readable is asked before the goroutine is parked and when it was woken. A plain
// read would return without a poll, as the file is readable before.
func (i *polled) readable(fd uintptr) bool {
	if !i.set {
		i.set = true
		_, _ = syscall.Write(int(fd), one[:]) // of an eventfd that is open, cannot fail
		return false
	}
	var count [8]byte
	_, _ = syscall.Read(int(fd), count[:]) // as little
	return true
}

func (i *polled) rest() {
	_ = i.file.SetReadDeadline(time.Now().Add(takeOver)) // fails only when closed, as the next two
	_ = i.raw.Read(func(uintptr) bool { return false })
	_ = i.file.SetReadDeadline(time.Time{})
}

func (i *polled) close() error { return i.file.Close() }

// one is what is added to the counter: above zero in either byte order.
var one = [8]byte{1}
