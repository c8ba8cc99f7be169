package load

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tree makes a file system of cgroups in which self is the cgroup of this process.
func tree(t *testing.T, self string, files map[string]string) cgroups {
	t.Helper()
	c := cgroups{mount: filepath.Join(t.TempDir(), "cgroup"), self: filepath.Join(t.TempDir(), "self")}
	write(t, c.self, self)
	for name, text := range files {
		write(t, filepath.Join(c.mount, name), text)
	}
	return c
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestQuota(t *testing.T) {
	for _, row := range []struct {
		name, self    string
		before, after map[string]string
		quota, cut    float64
	}{
		{
			"version 2", "0::/app\n",
			map[string]string{"app/cpu.max": "150000 100000\n", "app/cpu.stat": "usage_usec 1000000\nnr_periods 10\nnr_throttled 1\n"},
			map[string]string{"app/cpu.stat": "usage_usec 1300000\nnr_periods 20\nnr_throttled 6\n"},
			0.2, 0.5,
		},
		{
			"version 2, the quota is of the parent", "0::/pod/app\n",
			map[string]string{
				"pod/app/cpu.max": "max 100000\n", "pod/app/cpu.stat": "usage_usec 5\n",
				"pod/cpu.max": "50000 100000\n", "pod/cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\n",
			},
			map[string]string{"pod/cpu.stat": "usage_usec 500000\nnr_periods 0\nnr_throttled 0\n"},
			1, 0,
		},
		{
			"version 1, the path is the host's", "5:cpuacct:/docker/1\n4:cpu:/docker/1\n0::/\n",
			map[string]string{
				"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n",
				"cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", "cpuacct/cpuacct.usage": "0\n",
			},
			map[string]string{"cpuacct/cpuacct.usage": "1000000000\n", "cpu/cpu.stat": "nr_periods 4\nnr_throttled 4\n"},
			0.5, 1,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := tree(t, row.self, row.before)
			q, err := openQuota(c)
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range row.after {
				write(t, filepath.Join(c.mount, name), text)
			}
			var got readings
			if err := q.read(time.Second, &got); err != nil {
				t.Fatal(err)
			}
			if math.Abs(got[Quota]-row.quota) > 1e-9 || math.Abs(got[Throttled]-row.cut) > 1e-9 {
				t.Errorf("quota %v, throttled %v; want %v, %v", got[Quota], got[Throttled], row.quota, row.cut)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			if err := q.read(time.Second, &got); err == nil {
				t.Error("closed files can be read")
			}
		})
	}
}

// A quota that is taken away from a running process leaves no reading behind.
func TestQuotaIsTakenAway(t *testing.T) {
	c := tree(t, "0::/app\n", map[string]string{"app/cpu.max": "100000 100000\n", "app/cpu.stat": "usage_usec 0\n"})
	q, err := openQuota(c)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	write(t, filepath.Join(c.mount, "app/cpu.stat"), "usage_usec 1000000\n")
	var got readings
	if err := q.read(time.Second, &got); err != nil || got[Quota] != 1 {
		t.Fatalf("%v, %v", got[Quota], err)
	}
	write(t, filepath.Join(c.mount, "app/cpu.max"), "max 100000\n")
	if err := q.read(time.Second, &got); err != nil || !math.IsNaN(got[Quota]) {
		t.Errorf("without a quota: %v, %v", got[Quota], err)
	}
}

func TestNoQuota(t *testing.T) {
	for name, c := range map[string]cgroups{
		"no cgroups":     {mount: "/nonexistent", self: "/nonexistent"},
		"no file":        tree(t, "0::/\n", map[string]string{"cpu.stat": "usage_usec 1\n"}),
		"garbage":        tree(t, "x\n::\n\n", nil),
		"an empty file":  tree(t, "0::/\n", map[string]string{"cpu.max": "", "cpu.stat": ""}),
		"a strange path": tree(t, "0::/../../..\n", nil),
	} {
		if _, err := openQuota(c); err == nil || !strings.HasPrefix(err.Error(), "quota: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cgroup without a quota may be given one later.
func TestQuotaIsSetLater(t *testing.T) {
	for name, row := range map[string]struct {
		self          string
		before, after map[string]string
	}{
		"version 2": {
			"0::/app\n",
			map[string]string{"app/cpu.max": "max 100000\n", "app/cpu.stat": "usage_usec 1000000\n"},
			map[string]string{"app/cpu.max": "200000 100000\n", "app/cpu.stat": "usage_usec 2000000\n"},
		},
		"version 1": {
			"1:cpu,cpuacct:/\n",
			map[string]string{
				"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n",
				"cpu/cpu.stat": "nr_periods 0\n", "cpu/cpuacct.usage": "1000000000\n",
			},
			map[string]string{"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpuacct.usage": "2000000000\n"},
		},
	} {
		c := tree(t, row.self, row.before)
		q, err := openQuota(c)
		if err != nil {
			t.Fatal(err)
		}
		var got readings
		if err := q.read(time.Second, &got); err != nil || !math.IsNaN(got[Quota]) {
			t.Errorf("%s: without a quota: %v, %v", name, got[Quota], err)
		}
		for name, text := range row.after {
			write(t, filepath.Join(c.mount, name), text)
		}
		if err := q.read(time.Second, &got); err != nil || got[Quota] != 0.5 {
			t.Errorf("%s: 1 s of 2 processors in 1 s: %v, %v", name, got[Quota], err)
		}
		q.Close()
	}
}

// Of the quotas on the way to the root the tightest counts, whichever it is now, and the quota of the new cgroup where the process
// is moved.
func TestTightestQuota(t *testing.T) {
	c := tree(t, "0::/pod/app\n", map[string]string{
		"pod/app/cpu.max": "800000 100000\n", "pod/app/cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\n",
		"pod/cpu.max": "100000 100000\n", "pod/cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\n",
		"other/cpu.max": "50000 100000\n", "other/cpu.stat": "usage_usec 0\n",
	})
	q, err := openQuota(c)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	expect := func(what string, quota, throttled float64) {
		t.Helper()
		var got readings
		if err := q.read(time.Second, &got); err != nil || math.Abs(got[Quota]-quota) > 1e-9 || got[Throttled] != throttled {
			t.Errorf("%s: quota %v, throttled %v, %v; want %v, %v", what, got[Quota], got[Throttled], err, quota, throttled)
		}
	}
	write(t, filepath.Join(c.mount, "pod/app/cpu.stat"), "usage_usec 1000000\nnr_periods 10\nnr_throttled 0\n")
	write(t, filepath.Join(c.mount, "pod/cpu.stat"), "usage_usec 1000000\nnr_periods 10\nnr_throttled 5\n")
	expect("of the pod", 1, 0.5)
	write(t, filepath.Join(c.mount, "pod/app/cpu.max"), "25000 100000\n")
	write(t, filepath.Join(c.mount, "pod/app/cpu.stat"), "usage_usec 1250000\nnr_periods 20\nnr_throttled 10\n")
	write(t, filepath.Join(c.mount, "pod/cpu.stat"), "usage_usec 1250000\nnr_periods 20\nnr_throttled 5\n")
	expect("of the container, which has less now", 1, 1)
	write(t, c.self, "0::/other\n")
	if err := q.read(time.Second, new(readings)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.mount, "other/cpu.stat"), "usage_usec 500000\n")
	expect("of the cgroup to which the process was moved", 1, 0)
}

func TestMemoryLimit(t *testing.T) {
	for _, row := range []struct {
		name, self string
		files      map[string]string
		want       float64 // 0: none
	}{
		{"version 2", "0::/a\n", map[string]string{"a/memory.max": "1048576\n"}, 1 << 20},
		{"the parent has less", "0::/a/b\n", map[string]string{"a/b/memory.max": "8589934592\n", "a/memory.max": "1073741824\n"}, 1 << 30},
		{"of the parent", "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "4096\n"}, 4096},
		{"version 1", "7:memory:/a\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": "4096\n"}, 4096},
		{"version 1, none", "7:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, noLimit},
		{"none", "0::/\n", nil, 0},
	} {
		f, err := openMemoryLimits(tree(t, row.self, row.files))
		if (err == nil) != (row.want > 0) {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if err != nil {
			continue
		}
		if got, err := f.read(); got != row.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", row.name, got, err, row.want)
		}
		f.Close()
	}
}

// The least memory limit is looked up again, also when the process is moved.
func TestMemoryLimitChanges(t *testing.T) {
	c := tree(t, "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "max\n", "c/memory.max": "2048\n"})
	l, err := openMemoryLimits(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, text string
		want       float64
	}{
		{"", "", noLimit}, {"a/memory.max", "8192\n", 8192}, {"a/b/memory.max", "4096\n", 4096}, {"a/b/memory.max", "16384\n", 8192},
		{"../self", "0::/c\n", 2048},
	} {
		name := filepath.Join(c.mount, row.name)
		if row.name == "../self" {
			name = c.self
		}
		if row.name != "" {
			write(t, name, row.text)
		}
		if got, err := l.read(); got != row.want || err != nil {
			t.Errorf("%s is %q: %v, %v; want %v", row.name, row.text, got, err, row.want)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("usage_usec 12\nnr_periods 3\n"))
	f.Add([]byte("max 100000"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, v := range []float64{field(text, "nr_periods "), field(text, "x")} {
			if math.IsNaN(v) || v < 0 {
				t.Errorf("field of %q is %v", text, v)
			}
		}
		if v, ok := number(text); ok && v < 0 {
			t.Errorf("number(%q) = %v", text, v)
		}
	})
}
