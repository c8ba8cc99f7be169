package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// A container makes a child see itself in a container with so many processors, in
// the files that libraries read their CPU use from. On a whole machine these count
// what other programs use, the callers among them, and divide it by all
// processors: a server that may use one of two would never look more than half
// busy. The files have the format of cgroup v1, which both libraries that need them
// read; the child sees them in its mount namespace, and nothing else on
// the machine changes.
type container struct {
	dir     string
	stop    chan struct{}
	writing sync.WaitGroup
}

const (
	usageEvery  = 20 * time.Millisecond
	usageFile   = "cpuacct/cpuacct.usage"
	usageFormat = "%019d\n" // of one length, to be replaced in one write
	quotaPeriod = 100_000   // µs, as is usual
)

// newContainer fails where it is not allowed to mount. The caller calls close.
func newContainer(procs int) (*container, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may mount")
	}
	dir, err := os.MkdirTemp("", "overload")
	if err != nil {
		return nil, err
	}
	c := &container{dir: dir, stop: make(chan struct{})}
	for name, text := range map[string]string{
		"cgroup":                       "3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n",
		"cpuset/cpuset.cpus":           fmt.Sprintf("0-%d\n", runtime.NumCPU()-1),
		"cpu/cpu.cfs_quota_us":         fmt.Sprintln(procs * quotaPeriod),
		"cpu/cpu.cfs_period_us":        fmt.Sprintln(quotaPeriod),
		"cpuacct/cpuacct.usage_percpu": fmt.Sprintf(usageFormat, 0),
		usageFile:                      fmt.Sprintf(usageFormat, 0),
	} {
		if err := c.write(name, text); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return c, nil
}

func (c *container) write(name, text string) error {
	name = filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o600)
}

// enter is run by the shell that becomes the child: a library looks before main
// begins, and by the number of its process.
const enter = `mount --bind "$0" /sys/fs/cgroup && mount --bind "$0/cgroup" /proc/$$/cgroup && exec "$@"`

// launch starts cmd by start, in the container.
func (c *container) launch(cmd *exec.Cmd, start func() error) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	cmd.Args = append([]string{"sh", "-c", enter, c.dir, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := start(); err != nil {
		return err
	}
	c.writing.Go(func() { c.writeUsage(cmd.Process.Pid) })
	return nil
}

// close is for when the child has ended.
func (c *container) close() error {
	close(c.stop)
	c.writing.Wait()
	return os.RemoveAll(c.dir)
}

// writeUsage writes down, until close, how much CPU time the process has used.
func (c *container) writeUsage(pid int) {
	file, err := os.OpenFile(filepath.Join(c.dir, usageFile), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for {
		used := machine.ProcessorTime(pid)
		_, _ = file.WriteAt(fmt.Appendf(nil, usageFormat, used.Nanoseconds()), 0) // the next one tries again
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
	}
}
