package main

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

var update = flag.Bool("update", false, "write the pages")

// The pages show what the newest records have.
func TestPages(t *testing.T) {
	const root = "../.."
	if *update {
		if err := writePages(root); err != nil {
			t.Fatal(err)
		}
	}
	want, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 2 {
		t.Error("no README has a table")
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != string(text) {
			t.Errorf("%s differs from the records (%v): run go test ./benchmarks/record -update", name, err)
		}
	}
}

const printed = `goos: linux
pkg: github.com/seed90641741/spillway/throttle
BenchmarkServed-2   	 100	 30.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkServed-2   	 100	 10.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkServed-2   	 100	 20.0 ns/op	 0 B/op	 0 allocs/op
pkg: github.com/seed90641741/spillway/benchmarks
BenchmarkRetry/impl=spillway 	 100	 50.0 ns/op
BenchmarkRetry/impl=other-2 	 100	 150.0 ns/op
PASS
`

func TestSummarize(t *testing.T) {
	got, err := summarize(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, b := range got {
		names += b.Package + " " + b.Name + "\n"
	}
	if want := "throttle Served\nbenchmarks Retry/impl=spillway\nbenchmarks Retry/impl=other\n"; names != want {
		t.Errorf("got\n%swant\n%s", names, want)
	}
	if m := got[0].Units["ns/op"]; m != (Median{20, 10, 30, 10}) {
		t.Errorf("%+v", m)
	}
	if len(got[0].Units) != 3 {
		t.Errorf("units %v", got[0].Units)
	}
	for _, bad := range []string{"", "BenchmarkX 1 notanumber ns/op\n"} {
		if got, err := summarize(strings.NewReader(bad)); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

// sample returns two records: the newer one lacks a package.
func sample(t *testing.T) (older, newer *Record) {
	t.Helper()
	all, err := summarize(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	older = &Record{
		Name: "older", Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Commit: "0123456789abcdef", Modified: true,
		Machine: machine.Describe(), CPUPressure: new(0.4), Count: 6, BenchTime: "10ms", Benchmarks: all,
	}
	copied := *older
	newer = &copied
	newer.Name, newer.Time, newer.CPUPressure, newer.Benchmarks = "newer", older.Time.Add(time.Hour), new(0.01), all[1:]
	return older, newer
}

func TestWriteAndRead(t *testing.T) {
	root := t.TempDir()
	older, newer := sample(t)
	for _, r := range []*Record{older, newer} {
		if err := r.write(root); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readAll(root)
	if err != nil || len(got) != 2 || !reflect.DeepEqual(got[0], newer) || !reflect.DeepEqual(got[1], older) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{"", "../x", "a/b", "x.json"} {
		bad := *older
		if bad.Name = name; bad.write(root) == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	if err := os.Rename(filepath.Join(root, directory, "older.json"), filepath.Join(root, directory, "other.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(root); err == nil {
		t.Error("a record in the file of another name was read")
	}
	if _, err := readAll(t.TempDir()); err == nil {
		t.Error("no records, no error")
	}
}

// Each package is shown from the newest record of a quiet machine that has it.
func TestPage(t *testing.T) {
	older, newer := sample(t)
	shown := newest([]*Record{newer, older})
	got := string(wholePage(shown))
	for _, want := range []string{
		"Record `newer`, 1 November 2026: commit 0123456789ab with local changes",
		"6 runs of 10ms.\n\n## benchmarks\n",
		"| Retry | spillway | 50 | ± 0% | 50 | 1.00 | 0 |\n|  | other | 150 | ± 0% | 150 | 3.00 | 0 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "## throttle") {
		t.Errorf("a record of a busy machine is shown:\n%s", got)
	}
	if got := string(wholePage(newest([]*Record{older}))); !strings.Contains(got, noRecord) {
		t.Error(got)
	}
	newer.CPUPressure = nil
	if got := conditions(newer); !strings.Contains(got, "not known") {
		t.Error(got)
	}
}

func TestFill(t *testing.T) {
	older, _ := sample(t)
	older.CPUPressure = new(0.01)
	shown := newest([]*Record{older})
	text := "one\n" + beginTable + "throttle" + endMarker + "\nold table\n" + endTable + "\ntwo\n"
	got, err := fill(text, shown)
	if err != nil || !strings.HasPrefix(got, "one\n") || !strings.HasSuffix(got, endTable+"\ntwo\n") ||
		strings.Contains(got, "old table") || !strings.Contains(got, "| Served | 20 |") {
		t.Errorf("%v\n%s", err, got)
	}
	if again, err := fill(got, shown); err != nil || again != got {
		t.Errorf("filled again, it differs: %v\n%s", err, again)
	}
	for _, bad := range []string{
		beginTable + "throttle" + endMarker + "\n",
		beginTable + "throttle",
	} {
		if _, err := fill(bad, shown); err == nil {
			t.Errorf("%q was filled", bad)
		}
	}
}

func TestFlags(t *testing.T) {
	for want, c := range map[string]runCommand{
		"":                  {Count: 6, BenchTime: time.Second},
		"--count is 5":      {Count: 5, BenchTime: time.Second},
		"--benchtime is 1h": {Count: 6, BenchTime: time.Hour},
	} {
		err := c.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
