package process

import (
	"testing"

	"golang.org/x/sys/unix"
)

func cpusOf(t *testing.T, pid int) (set unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAffinity(t *testing.T) {
	before := cpusOf(t, 0)
	cpus := Separate()
	if cpus == (CPUs{}) {
		t.Skip("one processor, or none to choose")
	}
	p, err := StartBackend(t.Context(), &cpus, Backend{Service: ms, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	caller, backend := cpusOf(t, 0), cpusOf(t, p.cmd.Process.Pid)
	if backend.Count() != 1 || caller.Count() != before.Count()-1 {
		t.Errorf("%d processors for the backend and %d for the caller, of %d", backend.Count(), caller.Count(), before.Count())
	}
	for cpu := range 1024 {
		if backend.IsSet(cpu) && caller.IsSet(cpu) {
			t.Errorf("processor %d belongs to both", cpu)
		}
	}
	cpus.End()
	if after := cpusOf(t, 0); after != before {
		t.Error("the caller did not get its processors back")
	}
}
