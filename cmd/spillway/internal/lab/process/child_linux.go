package process

import (
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// CPUs keeps the backend and its caller on processors of their own. Left
// alone, the kernel likes to wake one on the processor of the other, since they
// talk to each other all the time, and the drill then measures how the two share
// one processor while another idles. The zero CPUs changes nothing.
type CPUs struct {
	all, caller, backend unix.CPUSet
}

// Separate moves this process off one processor, which it sets aside for the
// backend. It does nothing where there is only one, or where it is not allowed.
func Separate() (a CPUs) {
	if unix.SchedGetaffinity(0, &a.all) != nil || a.all.Count() < 2 {
		return CPUs{}
	}
	a.caller = a.all
	last := 0 // the first ones tend to have interrupts to serve
	for cpu := range len(a.all) * bits.UintSize {
		if a.all.IsSet(cpu) {
			last = cpu
		}
	}
	a.backend.Set(last)
	a.caller.Clear(last)
	if pinThreads(&a.caller) != nil {
		return CPUs{}
	}
	return a
}

// End lets this process run everywhere again.
func (a *CPUs) End() {
	if a.all.Count() > 0 {
		_ = pinThreads(&a.all)
	}
}

// start runs start, which starts the backend, on the backend's processor, as a
// child inherits where its parent may run.
func (a *CPUs) start(start func() error) error {
	if a.backend.Count() == 0 {
		return start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.SchedSetaffinity(0, &a.backend) == nil {
		defer func() { _ = unix.SchedSetaffinity(0, &a.caller) }()
	}
	return start()
}

// pinThreads moves each thread of this process to cpus. Threads to come inherit.
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
		if err := unix.SchedSetaffinity(tid, cpus); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}

// endsWithParent makes a child end when this process does, however it does.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
