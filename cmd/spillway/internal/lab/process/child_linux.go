package process

import (
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed90641741/spillway/internal/cputime"
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

// Taken returns how much of the processor of the backend programs other than own, and the host of a virtual machine, have
// taken since the machine was started. If the backend shares its processor with this process, all processors of this process count.
func (a *CPUs) Taken(own ...*Process) (time.Duration, bool) {
	cpus := a.backend
	if cpus.Count() == 0 && unix.SchedGetaffinity(0, &cpus) != nil {
		return 0, false
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	taken := usedOf(string(stat), cpus.IsSet)
	if a.backend.Count() == 0 {
		used, err := cputime.Process()
		if err != nil {
			return 0, false
		}
		taken -= used
	}
	for _, p := range own {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			return 0, false
		}
		taken -= usedBy(string(stat))
	}
	return taken, true
}

// tick is the unit of time in the files of /proc, on all architectures.
const tick = 10 * time.Millisecond

// usedOf returns the time of some processors that programs and the host have used, from /proc/stat. Interrupts, which are
// mostly the network between caller and backend, do not count.
func usedOf(stat string, of func(cpu int) bool) (used time.Duration) {
	for line := range strings.Lines(stat) {
		var cpu int
		var user, nice, system, idle, iowait, irq, softirq, stolen int
		name, times, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscanf(name, "cpu%d", &cpu); err != nil {
			continue // the sum of all, or something else
		}
		_, err := fmt.Sscan(times, &user, &nice, &system, &idle, &iowait, &irq, &softirq, &stolen)
		if err == nil && of(cpu) {
			used += time.Duration(user+nice+system+stolen) * tick
		}
	}
	return used
}

// usedBy returns the processor time of a process, from its file stat. Its name, in parentheses, may have spaces.
func usedBy(stat string) time.Duration {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	var user, system int
	if len(fields) > 12 {
		_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system) // the kernel writes numbers
	}
	return time.Duration(user+system) * tick
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
