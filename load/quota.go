package load

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path"
	"time"
)

// quotas has the quota of each cgroup from that of this process up to the root. The measure is that
// of the quota with the highest use.
type quotas struct {
	groups cgroups
	self   *membership
	all    []*quota
}

// openQuota opens the files of all cgroups that may have a quota, now or later.
func openQuota(c cgroups) (source, error) {
	self, err := c.membership()
	if err != nil {
		return nil, errors.Join(errNoQuota, err)
	}
	q := &quotas{groups: c, self: self}
	if q.lookUp(); len(q.all) == 0 {
		return nil, errors.Join(errNoQuota, q.Close())
	}
	return q, nil
}

var errNoQuota = errors.New("quota: no cgroup sets a quota of processor time")

func (q *quotas) lookUp() {
	dirs, version := q.groups.dirs("cpu")
	for _, dir := range dirs {
		x, err := openQuotaIn(dir, version)
		if err != nil {
			continue
		}
		if _, _, err := x.read(time.Second); err != nil {
			_ = x.Close() // an error of Close does not matter, as x was only read
			continue
		}
		q.all = append(q.all, x)
	}
}

// read reads all quotas. It ignores a cgroup that was removed.
func (q *quotas) read(d time.Duration, into *readings) error {
	into[Quota], into[Throttled] = math.NaN(), 0
	moved, err := q.self.changed()
	if err != nil {
		return err
	}
	if moved {
		_ = q.closeAll() // errors do not matter, as the files were only read
		q.lookUp()
		return nil // the use is known at the next reading
	}
	kept := q.all[:0]
	for _, x := range q.all {
		used, throttled, err := x.read(d)
		if err != nil {
			_ = x.Close()
			continue
		}
		kept = append(kept, x)
		if !(into[Quota] >= used) && !math.IsNaN(used) {
			into[Quota] = used
		}
		into[Throttled] = max(into[Throttled], throttled)
	}
	q.all = kept
	return nil
}

func (q *quotas) measures() []Measure { return []Measure{Quota, Throttled} }

func (q *quotas) closeAll() error {
	var all []error
	for _, x := range q.all {
		all = append(all, x.Close())
	}
	q.all = nil
	return errors.Join(all...)
}

func (q *quotas) Close() error { return errors.Join(q.closeAll(), q.self.Close()) }

// quota compares the processor time of a cgroup with its quota.
type quota struct {
	limits []file // cpu.max, or cpu.cfs_quota_us and cpu.cfs_period_us
	usage  file   // cpu.stat, or cpuacct.usage
	stat   file   // cpu.stat

	used, periods, throttled float64 // last reading: seconds, two counts
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

// share returns the quota in processors; 0 means no quota.
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
			of[n], _ = number(word) // 0 for "max" and -1
			n++
		}
	}
	if of[1] == 0 {
		return 0, nil
	}
	return of[0] / of[1], nil
}

// read returns the share of the quota that was used in the time d, NaN without a quota, and the
// share of the periods in which the quota was used up.
func (q *quota) read(d time.Duration) (share, cut float64, err error) {
	limit, err := q.share()
	if err != nil {
		return 0, 0, err
	}
	used, err := q.seconds()
	if err != nil {
		return 0, 0, err
	}
	text, err := q.stat.text()
	if err != nil {
		return 0, 0, err
	}
	periods, throttled := field(text, "nr_periods "), field(text, "nr_throttled ")
	share = math.NaN()
	if limit > 0 {
		share = (used - q.used) / d.Seconds() / limit
	}
	if periods > q.periods {
		cut = (throttled - q.throttled) / (periods - q.periods)
	}
	q.used, q.periods, q.throttled = used, periods, throttled
	return share, cut, nil
}

// seconds returns the processor time that the cgroup has used, in seconds.
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

func (q *quota) Close() error {
	all := []error{q.usage.Close(), q.stat.Close()}
	for i := range q.limits {
		all = append(all, q.limits[i].Close())
	}
	return errors.Join(all...)
}
