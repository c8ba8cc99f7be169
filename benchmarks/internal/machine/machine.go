// Package machine is what comparisons need to know of the machine: which processors a
// server has, how much of them it used, and how busy other processes kept them.
package machine

import (
	"bufio"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Description says where figures were measured.
type Description struct {
	CPU        string `json:"cpu"` // the model, "unknown" where the system does not say
	Processors int    `json:"processors"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Go         string `json:"go"`
}

// Describe describes this machine and this process.
func Describe() Description {
	return Description{
		CPU: model("/proc/cpuinfo"), Processors: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
	}
}

// model returns the first name of a model in a file such as /proc/cpuinfo.
func model(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return "unknown"
}

// pressureFile is where Linux says how long threads waited for a processor.
const pressureFile = "/proc/pressure/cpu"

var stalledSome = regexp.MustCompile(`(?m)^some .* total=(\d+)$`)

// Pressure begins to measure, and returns a function that returns the share of the time since
// then in which a thread was ready to run and had no processor; nil where that is not known.
func Pressure() func() *float64 {
	start := time.Now()
	before, known := stalled(pressureFile)
	return func() *float64 {
		after, still := stalled(pressureFile)
		if !known || !still {
			return nil
		}
		return new((after - before).Seconds() / time.Since(start).Seconds())
	}
}

// stalled returns for how long threads have waited since the machine was started.
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
