package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// affinity keeps proxies and this process on processors of their own.
type affinity struct{ own, proxies unix.CPUSet }

// separate moves this process to the first processor that it may use, and sets the last
// one aside for proxies.
func separate() (a affinity, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return a, err
	}
	if all.Count() < 2 {
		return a, errors.New("two processors are needed")
	}
	first, last := -1, -1
	for cpu := range 64 * len(all) {
		if all.IsSet(cpu) {
			if last = cpu; first < 0 {
				first = cpu
			}
		}
	}
	a.own.Set(first)
	a.proxies.Set(last)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return a, err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return a, err
		}
		if err := unix.SchedSetaffinity(tid, &a.own); err != nil && !errors.Is(err, unix.ESRCH) {
			return a, err
		}
	}
	return a, nil
}

// start starts a proxy on its processor.
func (a *affinity) start(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &a.proxies); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &a.own) }() // it was there before
	return cmd.Start()
}

// tick is the unit of time in /proc, which is the same on all machines that Go knows.
const tick = 10 * time.Millisecond

// processorTime returns what a process has used, 0 if it is gone.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return time.Duration(user+system) * tick
}
