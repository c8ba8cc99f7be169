package drill

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"time"
)

// pressureFile is where Linux says how long threads waited for a processor.
const pressureFile = "/proc/pressure/cpu"

// busyPressure is the share of the step above which the machine was too busy for
// what is measured. The protected run keeps about as many threads busy as there
// are processors, and alone on the machine was seen to cause a tenth of it.
const busyPressure = 0.1

// pressure waits for the end of p in a run that began at start and returns the
// share of it in which some thread of the machine was ready to run and had no
// processor. It returns nil where that is not known, or when ctx ends.
func (p Phase) pressure(ctx context.Context, start time.Time) *float64 {
	sleepUntil(ctx, start.Add(seconds(p.Start)))
	before, known := stalled(pressureFile)
	if !sleepUntil(ctx, start.Add(seconds(p.End))) || !known {
		return nil
	}
	after, known := stalled(pressureFile)
	if !known {
		return nil
	}
	return new((after - before).Seconds() / (p.End - p.Start))
}

var stalledSome = regexp.MustCompile(`(?m)^some .* total=(\d+)$`)

// stalled returns for how long, since the machine was started, threads have
// waited while others ran.
func stalled(file string) (time.Duration, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	match := stalledSome.FindSubmatch(data)
	if match == nil {
		return 0, false
	}
	us, err := strconv.ParseInt(string(match[1]), 10, 64)
	return time.Duration(us) * time.Microsecond, err == nil
}
