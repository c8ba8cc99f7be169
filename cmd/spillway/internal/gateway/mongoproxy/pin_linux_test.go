package mongoproxy

import (
	"math/bits"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepApart moves all threads of this process to the last processor that it may use,
// or to all others, and returns what lets them run everywhere again. Left alone, the
// kernel now and then puts both ends of a conversation on one processor and lets the
// other sleep, which then takes longer to wake than any proxy takes.
func keepApart(last bool) (restore func()) {
	var all, to unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		return func() {}
	}
	end := 0
	for cpu := range len(all) * bits.UintSize {
		if all.IsSet(cpu) {
			end = cpu
		}
	}
	if last {
		to.Set(end)
	} else {
		to = all
		to.Clear(end)
	}
	move(&to)
	return func() { move(&all) }
}

// move moves each thread of this process. Threads to come inherit.
func move(to *unix.CPUSet) {
	threads, _ := os.ReadDir("/proc/self/task") // without it nobody is moved
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetaffinity(tid, to) // one that has ended
		}
	}
}
