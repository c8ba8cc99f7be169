package drill

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"time"
)

// busyPressure is the share of the step above which the machine was too busy for
// what is measured. The protected run keeps about as many threads busy as there
// are processors, and alone on the machine was seen to cause a tenth of it.
const busyPressure = 0.1

// slowBackend is the share of its capacity below which a backend was slow just before the
// run. Protection takes a few hundredths of it.
const slowBackend = 0.9

// pressure waits for the end of p in a run that began at start and returns the
// share of it in which some thread of the machine was ready to run and had no
// processor, or the host of a virtual machine had taken one. It returns nil where
// that is not known, or when ctx ends.
func (p Phase) pressure(ctx context.Context, start time.Time) *float64 {
	sleepUntil(ctx, start.Add(seconds(p.Start)))
	before, known := lacking()
	if !sleepUntil(ctx, start.Add(seconds(p.End))) || !known {
		return nil
	}
	after, known := lacking()
	if !known {
		return nil
	}
	return new(min(1, (after-before).Seconds()/(p.End-p.Start)))
}

var (
	stalledSome = regexp.MustCompile(`(?m)^some .* total=(\d+)$`)
	stolenTicks = regexp.MustCompile(`(?m)^cpu +(?:\d+ +){7}(\d+) `)
)

// lacking returns for how long, since the machine was started, threads have waited while others
// ran, or the host of a virtual machine has run something else on its processors. Linux knows
// both; the latter is 0 where there is no host, or the host does not say.
func lacking() (time.Duration, bool) {
	stalled, known := counted("/proc/pressure/cpu", stalledSome, time.Microsecond)
	stolen, _ := counted("/proc/stat", stolenTicks, 10*time.Millisecond) // on all architectures
	return stalled + stolen, known
}

// counted returns a number in a file of the kernel, in units of time.
func counted(file string, number *regexp.Regexp, unit time.Duration) (time.Duration, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	match := number.FindSubmatch(data)
	if match == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(match[1]), 10, 64)
	return time.Duration(n) * unit, err == nil
}
