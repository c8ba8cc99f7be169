package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/loglimit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func all(file string) *config.Access {
	return &config.Access{File: file, MaxBytes: 1 << 16, Sample: 1, SampleLost: 1, Rate: 1e5}
}

func open(t *testing.T, c *config.Access) *AccessLog {
	t.Helper()
	l, err := OpenAccessLog(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// written returns the lines of a file.
func written(t *testing.T, name string) (all []Record) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		all = append(all, r)
	}
	return all
}

func TestNone(t *testing.T) {
	if l, err := OpenAccessLog(nil); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	var none *AccessLog
	none.Close()
	if _, err := OpenAccessLog(all(filepath.Join(t.TempDir(), "none", "log"))); err == nil {
		t.Error("no error for a file that cannot be opened")
	}
}

func TestLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.json")
	l := open(t, all(name))
	wait := 1.5
	l.Write(&Record{Time: start, Account: "served", Path: "/a\n{}", Status: 200, Wait: &wait})
	l.rate.Lose(7)
	l.Write(&Record{Account: "rejected", Reason: "quota"})
	l.Close()
	got := written(t, name)
	if len(got) != 2 || got[0].Path != "/a\n{}" || *got[0].Wait != 1.5 || !got[0].Time.Equal(start) || got[1].Reason != "quota" || got[1].Wait != nil || got[1].LeftOut != 7 {
		t.Errorf("%+v", got)
	}
	l.Write(&Record{}) // a request may end later
	if l.rate.LeftOut() != 1 {
		t.Errorf("%d lines left out", l.rate.LeftOut())
	}
}

// TestSamples: served requests and others have different sampling ratios, and the rate is
// never exceeded.
func TestSamples(t *testing.T) {
	c := all("")
	c.Sample, c.SampleLost, c.Rate = 0.1, 1, 1000
	l := open(t, c)
	defer l.Close()
	now := start
	count := func(a accounts.Account, n int, every time.Duration) (wanted int) {
		now = now.Add(time.Hour)
		for range n {
			if l.Samples(now, a) {
				wanted++
			}
			now = now.Add(every)
		}
		return wanted
	}
	if n := count(accounts.Served, 10_000, time.Second); n < 800 || n > 1200 { // six standard deviations
		t.Errorf("%d of 10000, want about 1000", n)
	}
	if n := count(accounts.Failed, 1000, time.Second); n != 1000 {
		t.Errorf("%d of 1000 that failed", n)
	}
	n := count(accounts.Rejected, 100_000, 10*time.Microsecond)
	if n > 2001 || n < 1999 {
		t.Errorf("%d lines of a flood of one second, want 2000: the rate and the burst", n)
	}
	if left := l.rate.LeftOut(); left != uint64(100_000-n) {
		t.Errorf("%d lines left out, want %d", left, 100_000-n)
	}
	none := open(t, &config.Access{Sample: -1, SampleLost: -1, Rate: 1})
	defer none.Close()
	if none.Samples(start, accounts.Served) || none.Samples(start, accounts.Late) {
		t.Error("negative shares want lines")
	}
}

// TestTheDiskIsNotFilled: however much is written, the two files stay within their bound.
func TestTheDiskIsNotFilled(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.json")
	f := file{name: name, most: 1 << 16}
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 999) + "\n")
	for range 1000 {
		if err := f.write(line); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	for _, name := range []string{name, name + ".1"} {
		if s, err := os.Stat(name); err != nil || s.Size() > 1<<16 || s.Size() == 0 {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 2 {
		t.Errorf("%d files", len(entries))
	}
	again := file{name: name, most: 1 << 16} // what is there counts
	if err := again.open(); err != nil || again.size == 0 {
		t.Errorf("%v, %d", err, again.size)
	}
	again.close()
}

// full is a disk that takes a part of a line, then nothing, and then everything again.
type full struct {
	bytes.Buffer
	writes int
}

func (f *full) Write(p []byte) (int, error) {
	switch f.writes++; f.writes {
	case 1:
		n, _ := f.Buffer.Write(p[:3])
		return n, errors.New("no space left on device")
	case 2:
		return 0, errors.New("no space left on device")
	default:
		return f.Buffer.Write(p)
	}
}

// TestFullDisk: lines are dropped while the disk is full, and a partial line does not corrupt
// others.
func TestFullDisk(t *testing.T) {
	disk := new(full)
	f := file{to: disk}
	for i := range 4 {
		if err := f.write([]byte(`{"a":1}` + "\n")); (err != nil) != (i < 2) {
			t.Errorf("line %d: %v", i, err)
		}
	}
	if got, want := disk.String(), "{\"a\n{\"a\":1}\n{\"a\":1}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// stuck is a disk that hangs until it is released.
type stuck struct {
	release chan struct{}
	bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.release
	return s.Buffer.Write(p)
}

// TestSlowDiskDelaysNoRequest: Write returns while the writer hangs, and lines that are lost are
// counted in the next one.
func TestSlowDiskDelaysNoRequest(t *testing.T) {
	s := &stuck{release: make(chan struct{})}
	rate, err := loglimit.NewRate(-1)
	if err != nil {
		t.Fatal(err)
	}
	l := &AccessLog{rate: rate, file: file{to: s}}
	l.queue = NewQueue(l.write, nil)
	const n = 5000
	for range n {
		l.Write(&Record{Account: "late"})
	}
	if s := l.Stats(); s.LostNow < n/2 {
		t.Errorf("%+v", s)
	}
	close(s.release)
	for l.Stats().LostNow > 0 { // until a line is written
		runtime.Gosched()
	}
	l.Close()
	written, left := 0, l.rate.LeftOut()
	for d := json.NewDecoder(&s.Buffer); d.More(); written++ {
		var r Record
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		left += r.LeftOut
	}
	if uint64(written)+left != n {
		t.Errorf("%d lines written and %d left out of %d", written, left, n)
	}
}
