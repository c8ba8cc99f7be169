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

// wait makes the file readable and waits until a poll of the runtime notices it.
func (i *polled) wait() {
	i.set = false
	_ = i.raw.Read(i.poll) // fails only when closed
}

// readable is called twice for each wait: before the runtime parks the goroutine, and after the
// poll has woken it. The first call makes the file readable and returns false, so the goroutine
// waits for a poll. A plain read of a file that is readable would return without a poll.
func (i *polled) readable(fd uintptr) bool {
	if !i.set {
		i.set = true
		_, _ = syscall.Write(int(fd), one[:]) // cannot fail while the eventfd is open
		return false
	}
	var count [8]byte
	_, _ = syscall.Read(int(fd), count[:]) // cannot fail either
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
