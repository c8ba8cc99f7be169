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

// Of /proc/stat, the time of programs and of the host counts, on the processors that are asked for.
func TestUsedOf(t *testing.T) {
	const stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 1 5 5 5 5 2 0 0\ncpu1 7 0 0 5 5 5 5 0 0 0\nintr 1 2 3\n"
	if got := usedOf(stat, func(cpu int) bool { return cpu == 0 }); got != 113*tick {
		t.Errorf("%v of the first processor, want %v", got, 113*tick)
	}
	if got := usedOf(stat, func(int) bool { return true }); got != 120*tick {
		t.Errorf("%v of both, want %v", got, 120*tick)
	}
}

func TestUsedBy(t *testing.T) {
	if got := usedBy("42 (a) b) S 1 42 42 0 -1 4194304 1 2 3 4 50 7 0 0 20 0 1 0 100"); got != 57*tick {
		t.Errorf("%v, want %v", got, 57*tick)
	}
	if got := usedBy(""); got != 0 {
		t.Errorf("%v of nothing", got)
	}
}

// What the backend uses itself was not taken from it.
func TestTaken(t *testing.T) {
	cpus := Separate()
	defer cpus.End()
	p, err := StartBackend(t.Context(), &cpus, Backend{Kind: KindCPU, Service: ms, Rounds: 400_000_000})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	alone, known := cpus.Taken()
	if !known {
		t.Skip("not known on this machine")
	}
	if _, err := call(t, p); err != nil { // burns some tenths of a second
		t.Fatal(err)
	}
	all, _ := cpus.Taken()
	others, known := cpus.Taken(p)
	if !known || all-alone < 5*tick || others > all-5*tick {
		t.Errorf("others took %v, with the backend it was %v before the call and %v after it", others, alone, all)
	}
}
