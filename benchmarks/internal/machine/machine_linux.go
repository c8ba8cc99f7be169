package machine

import (
	"errors"
	"math/bits"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// An Affinity keeps a server and its clients on processors of their own. Left alone, the
// kernel often runs both on one processor, since they wake each other all the time.
// The zero Affinity changes nothing.
type Affinity struct {
	all, clients, server unix.CPUSet
}

// Separate moves this process, which has the clients, off the last processor that it may
// use. That one is for the server. It fails where there is only one processor. Call End.
func Separate() (*Affinity, error) {
	a := new(Affinity)
	if err := unix.SchedGetaffinity(0, &a.all); err != nil {
		return new(Affinity), err
	}
	if a.all.Count() < 2 {
		return new(Affinity), errors.New("two processors are needed")
	}
	last := 0 // the first ones tend to serve interrupts
	for cpu := range len(a.all) * bits.UintSize {
		if a.all.IsSet(cpu) {
			last = cpu
		}
	}
	a.clients = a.all
	a.clients.Clear(last)
	a.server.Set(last)
	if err := pinThreads(&a.clients); err != nil {
		return new(Affinity), err
	}
	return a, nil
}

// End lets this process run everywhere again.
func (a *Affinity) End() {
	if a.all.Count() > 0 {
		_ = pinThreads(&a.all) // was allowed before
	}
}

// Start starts a server on its processor: a child runs where its parent may.
func (a *Affinity) Start(cmd *exec.Cmd) error {
	if a.server.Count() == 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &a.server); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &a.clients) }() // was allowed before
	return cmd.Start()
}

// pinThreads moves each thread of this process to cpus. Later threads inherit that.
func pinThreads(cpus *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, cpus); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// ProcessorTime returns what a process has used, 0 if it does not exist.
func ProcessorTime(pid int) time.Duration {
	var used unix.Timespec
	clock := int32(^pid<<3 | 2) // clock_getcpuclockid(3)
	if unix.ClockGettime(clock, &used) != nil {
		return 0
	}
	return time.Duration(used.Nano())
}
