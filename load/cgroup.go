package load

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strings"
	"time"
)

// cgroups finds the files of the cgroup that this process is in. It knows both
// versions at their usual mount points.
type cgroups struct {
	mount string // /sys/fs/cgroup
	self  string // /proc/self/cgroup
}

var system = cgroups{mount: "/sys/fs/cgroup", self: "/proc/self/cgroup"}

// dirs returns the directories of a controller from that of this process up to
// the root, in version 1 or 2. Inside a container the path of the process may
// be one that only the host can see: then some of them do not exist.
func (c cgroups) dirs(controller string) (dirs []string, version int) {
	data, err := os.ReadFile(c.self)
	if err != nil {
		return nil, 0
	}
	root, at := c.mount, ""
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[1] == "" && version == 0:
			at, version = parts[2], 2
		case hasWord(parts[1], controller):
			root, at, version = path.Join(c.mount, controller), parts[2], 1
		}
	}
	for p := path.Clean("/" + at); version != 0; p = path.Dir(p) {
		dirs = append(dirs, path.Join(root, p))
		if p == "/" {
			break
		}
	}
	return dirs, version
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// memoryLimit returns the nearest memory limit that is set.
func (c cgroups) memoryLimit() (*limitFile, error) {
	dirs, version := c.dirs("memory")
	name := [...]string{"", "memory.limit_in_bytes", "memory.max"}[version]
	for _, dir := range dirs {
		f, err := openLimit(path.Join(dir, name))
		if err == nil {
			return f, nil
		}
	}
	return nil, errors.New("memory: no cgroup sets a limit")
}

// noLimit is what version 1 says for none, or nearly so.
const noLimit = 1 << 60

// limitFile is a file that holds a limit in bytes, kept open.
type limitFile struct{ file }

func openLimit(name string) (*limitFile, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	l := &limitFile{f}
	if v, err := l.read(); err != nil || v >= noLimit {
		return nil, errors.Join(errors.New("no limit"), err, l.Close())
	}
	return l, nil
}

// read returns the limit, a huge one if it is not set.
func (l *limitFile) read() (float64, error) {
	text, err := l.text()
	if err != nil {
		return 0, err
	}
	if v, ok := number(text); ok {
		return v, nil
	}
	return noLimit, nil
}

// quota is the processor time of a cgroup against its quota.
type quota struct {
	limits []file // cpu.max, or cpu.cfs_quota_us and cpu.cfs_period_us
	usage  file   // cpu.stat, or cpuacct.usage
	stat   file   // cpu.stat

	used, periods, throttled float64 // as last seen
}

// openQuota opens the files of the nearest cgroup that sets a quota.
func openQuota(c cgroups) (source, error) {
	dirs, version := c.dirs("cpu")
	for _, dir := range dirs {
		q, err := openQuotaIn(dir, version)
		if err != nil {
			continue
		}
		if share, err := q.share(); err == nil && share > 0 && q.read(time.Second, new(readings)) == nil {
			return q, nil
		}
		_ = q.Close() // was only read
	}
	return nil, errors.New("quota: no cgroup sets a quota of processor time")
}

func openQuotaIn(dir string, version int) (*quota, error) {
	names := []string{"cpu.stat", "cpu.stat", "cpu.max"}
	if version == 1 {
		names = []string{"cpu.stat", "../cpuacct/cpuacct.usage", "cpu.cfs_quota_us", "cpu.cfs_period_us"}
		if _, err := os.Stat(path.Join(dir, "cpuacct.usage")); err == nil {
			names[1] = "cpuacct.usage"
		}
	}
	var files []file
	for _, name := range names {
		f, err := openFile(dir + "/" + name)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return &quota{stat: files[0], usage: files[1], limits: files[2:]}, nil
}

// share returns the quota in processors, 0 if it is not set.
func (q *quota) share() (float64, error) {
	var of [2]float64
	n := 0
	for i := range q.limits {
		text, err := q.limits[i].text()
		if err != nil {
			return 0, err
		}
		for n < 2 && len(text) > 0 {
			var word []byte
			word, text, _ = bytes.Cut(text, []byte{' '})
			of[n], _ = number(word) // "max" and -1 leave 0
			n++
		}
	}
	if of[1] == 0 {
		return 0, nil
	}
	return of[0] / of[1], nil
}

func (q *quota) read(d time.Duration, into *readings) error {
	share, err := q.share()
	if err != nil {
		return err
	}
	used, err := q.seconds()
	if err != nil {
		return err
	}
	text, err := q.stat.text()
	if err != nil {
		return err
	}
	periods, throttled := field(text, "nr_periods "), field(text, "nr_throttled ")
	into[Quota], into[Throttled] = math.NaN(), 0 // if the quota was taken away
	if share > 0 {
		into[Quota] = (used - q.used) / d.Seconds() / share
	}
	if periods > q.periods {
		into[Throttled] = (throttled - q.throttled) / (periods - q.periods)
	}
	q.used, q.periods, q.throttled = used, periods, throttled
	return nil
}

// seconds returns the processor time that the cgroup has used.
func (q *quota) seconds() (float64, error) {
	text, err := q.usage.text()
	if err != nil {
		return 0, err
	}
	if ns, ok := number(text); ok {
		return ns / 1e9, nil
	}
	return field(text, "usage_usec ") / 1e6, nil
}

func (q *quota) measures() []Measure { return []Measure{Quota, Throttled} }

func (q *quota) Close() error {
	all := []error{q.usage.Close(), q.stat.Close()}
	for i := range q.limits {
		all = append(all, q.limits[i].Close())
	}
	return errors.Join(all...)
}

// file is a small file of the kernel's that is opened once and read often.
type file struct {
	*os.File
	buf []byte
}

func openFile(name string) (file, error) {
	f, err := os.Open(name)
	return file{f, make([]byte, 1024)}, err
}

// text returns the contents, without the last newline. It is valid until the
// next call.
func (f *file) text() ([]byte, error) {
	n, err := f.ReadAt(f.buf, 0)
	if n == 0 {
		return nil, fmt.Errorf("load: %s: %w", f.Name(), err)
	}
	return bytes.TrimSuffix(f.buf[:n], []byte{'\n'}), nil
}

// field returns the number after name, which begins a line of text; 0 if there
// is none.
func field(text []byte, name string) float64 {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if len(line) > len(name) && string(line[:len(name)]) == name {
			v, _ := number(line[len(name):])
			return v
		}
	}
	return 0
}

// number returns the decimal digits that text consists of, and whether it does.
func number(text []byte) (v float64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + float64(c-'0')
	}
	return v, len(text) > 0
}
