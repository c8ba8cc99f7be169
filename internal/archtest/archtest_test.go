package archtest

import (
	"go/format"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestArchitecture fails with one line for each rule that is broken.
func TestArchitecture(t *testing.T) {
	all, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range check(all, table) {
		t.Error(complaint)
	}
}

// sample is a small project that breaks no rule.
var sample = map[string]string{
	"go.work":                   "go 1.26.0\n\nuse (\n\t.\n\t./spillgrpc\n\t./cmd/spillway\n)\n",
	"go.mod":                    "module " + module + "\n\ngo 1.26.0\n",
	"spillgrpc/go.mod":          "module " + module + "/spillgrpc\n\ngo 1.26.0\n",
	"cmd/spillway/go.mod":       "module " + module + "/cmd/spillway\n\ngo 1.26.0\n",
	"words.go":                  "package spillway; import \"fmt\"",
	"retry/retry.go":            "package retry; import \"" + module + "\"",
	"retry/do.go":               "package retry; import \"time\"; func Do() { <-time.After(1) }",
	"retry/in_test.go":          "package retry; import \"" + module + "/spilltest\"",
	"budget/budget.go":          "package budget",
	"budget/out_test.go":        "package budget_test; import \"" + module + "/retry\"",
	"egress/egress.go":          "package egress; import (\"" + module + "/retry\"; \"time\"); var _ = time.Now",
	"spilltest/kit.go":          "package spilltest; import \"" + module + "\"",
	"spillgrpc/dial.go":         "package spillgrpc; import (\"google.golang.org/grpc/codes\"; \"" + module + "/spillgrpc/internal/x\")",
	"spillgrpc/internal/x/x.go": "package x; import \"" + module + "/egress\"",
	"cmd/spillway/main.go":      "package main; import (\"example.org/flags\"; \"" + module + "/spilltest\")",
	"egress/testdata/bad.go":    "not even Go",
}

var sampleTable = map[string]row{
	".":            {level: words},
	"retry":        {level: policies, waits: "retry/do.go"},
	"budget":       {level: policies},
	"egress":       {level: stacks},
	"spilltest":    {level: edges, kit: true},
	"spillgrpc":    {level: edges, hosts: []string{"google.golang.org/grpc"}},
	"cmd/spillway": {level: programs},
}

// checkSample checks sample with the files of change in place of the original ones.
func checkSample(t *testing.T, change map[string]string) []string {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, files := range []map[string]string{sample, change} {
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	maps.DeleteFunc(fsys, func(_ string, f *fstest.MapFile) bool { return len(f.Data) == 0 })
	all, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return check(all, sampleTable)
}

func TestSampleBreaksNoRule(t *testing.T) {
	if got := checkSample(t, nil); len(got) != 0 {
		t.Errorf("complaints about a sound project:\n%s", strings.Join(got, "\n"))
	}
}

// TestEachRuleCanBreak changes one file of the sample, or takes one out, and
// expects one complaint.
func TestEachRuleCanBreak(t *testing.T) {
	const ours, gomod = `"` + module, "\n\ngo 1.26.0\n"
	for _, test := range []struct{ name, file, text, want string }{
		{"no row", "quota/quota.go", "package quota", "quota has no row"},
		{"no package", "egress/egress.go", "", "egress has a row but no package"},
		{"sibling policy", "budget/budget.go", "package budget; import " + ours + `/retry"`, "budget/budget.go (L1 policies) imports retry (L1 policies)"},
		{"sibling in its own test", "budget/in_test.go", "package budget; import " + ours + `/retry"`, "budget/in_test.go (L1 policies) imports retry"},
		{"sibling adapter", "spillgrpc/dial.go", "package spillgrpc; import " + ours + `/spilltest"`, "spillgrpc/dial.go (L3 edges) imports spilltest (L3 edges)"},
		{"upward", "words.go", "package spillway; import " + ours + `/retry"`, "words.go (L0 words) imports retry (L1 policies)"},
		{"upward in a test", "budget/out_test.go", "package budget_test; import " + ours + `/egress"`, "budget/out_test.go (L1 policies) imports egress (L2 stacks)"},
		{"upward from inside a module", "spillgrpc/internal/x/x.go", "package x; import " + ours + `/cmd/spillway/y"`, "spillgrpc/internal/x/x.go (L3 edges) imports cmd/spillway (L4 programs)"},
		{"foreign in the root", "retry/retry_test.go", `package retry; import "pgregory.net/rapid"`, "the root module uses the standard library only"},
		{"foreign with our prefix", "retry/retry.go", "package retry; import " + ours + `x/retry"`, "the root module uses the standard library only"},
		{"foreign in an adapter", "spillgrpc/dial.go", `package spillgrpc; import "google.golang.org/grpcx"`, "an adapter uses the library that it is for"},
		{"log", "egress/egress.go", `package egress; import "log/slog"`, "egress/egress.go imports log/slog"},
		{"clock", "retry/retry.go", `package retry; import "time"; var _ = time.Now()`, "retry/retry.go uses time.Now"},
		{"clock by another name", "budget/budget.go", `package budget; import clock "time"; var _ = clock.Now()`, "budget/budget.go uses time.Now"},
		{"clock not needed", "retry/do.go", "package retry", "retry/do.go waits for nothing"},
		{"goroutine", "budget/budget.go", "package budget; func f() { go f() }", "budget/budget.go starts a goroutine"},
		{"sleeping test", "egress/e_test.go", `package egress; import ("time"; "testing/synctest"); func TestX() { time.Sleep(1) }; func TestY() { synctest.Test(time.Sleep) }`, "TestX sleeps"},
		{"sleeping helper", "egress/e_test.go", `package egress; import "time"; func wait() { time.Sleep(1) }`, "wait sleeps"},
		{"long function", "budget/budget.go", "package budget; func f() {" + strings.Repeat("\n", 40) + "}", "budget/budget.go: f has 41 lines"},
		{"long file", "budget/budget.go", "package budget" + strings.Repeat("\nvar _ = 0", 350), "budget/budget.go has 351 lines"},
		{"long line", "spillgrpc/dial.go", "package spillgrpc // " + strings.Repeat("x", 140), "spillgrpc/dial.go:1 has 161 characters"},
		{"requirement of the root", "go.mod", "module " + module + gomod + "\nrequire example.org/x v1.0.0\n", "the root module requires nothing"},
		{"another Go", "spillgrpc/go.mod", "module " + module + "/spillgrpc\n\ngo 1.25.0\n", "spillgrpc/go.mod names another version of Go"},
		{"another Go in go.work", "go.work", "go 1.25.0\nuse (\n./spillgrpc\n./cmd/spillway\n)\n", "go.work names another version of Go"},
		{"toolchain", "spillgrpc/go.mod", "module " + module + "/spillgrpc" + gomod + "\ntoolchain go1.26.8\n", "spillgrpc/go.mod has a toolchain line"},
		{"name of a module", "spillgrpc/go.mod", "module " + module + "/grpc" + gomod, "the module must be called " + module + "/spillgrpc"},
		{"for tests only", "cmd/spillway/go.mod", "module " + module + "/cmd/spillway" + gomod + "\nrequire " + module + "/spillgrpc v0.1.0\n", "requires " + module + "/spillgrpc for tests only"},
		{"not in the workspace", "tools/go.mod", "module " + module + "/tools" + gomod, "run go work use ./tools"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := checkSample(t, map[string]string{test.file: test.text})
			if len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Errorf("got %q, want one complaint with %q", got, test.want)
			}
		})
	}
}

// TestTagsMayBeLong: a tag of a field, and lines of tests, have no bound.
func TestTagsMayBeLong(t *testing.T) {
	long := strings.Repeat("x", 200)
	got := checkSample(t, map[string]string{
		"spillgrpc/dial.go": "package spillgrpc; type T struct {\n\tA int `yaml:\"" + long + "\"`\n}",
		"egress/e_test.go":  "package egress // " + long,
	})
	if len(got) != 0 {
		t.Errorf("got %q, want no complaint", got)
	}
}

// TestFormat fails for each file that gofmt would change.
func TestFormat(t *testing.T) {
	all, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range all.packages {
		for _, f := range files {
			if !formatted(f.text) {
				t.Errorf("%s is not formatted: run gofmt -w on it", f.name)
			}
		}
	}
	if formatted("package x\nvar  y = 1\n") {
		t.Error("two spaces are as gofmt writes them")
	}
}

// formatted reports whether text is as gofmt writes it.
func formatted(text string) bool {
	got, err := format.Source([]byte(text))
	return err == nil && string(got) == text
}

// TestBubblesMaySleep guards against a rule that no test could keep.
func TestBubblesMaySleep(t *testing.T) {
	got := checkSample(t, map[string]string{
		"egress/wait_test.go": `package egress; import "time"; func wait() { time.Sleep(1) }`,
		"egress/e_test.go": `package egress
			import ("testing/synctest"; "time")
			func run(f func()) { synctest.Test(t, f) }
			func TestX() { synctest.Test(t, func() { time.Sleep(1); wait() }) }
			func TestY() { run(func() { time.Sleep(1) }) }`,
	})
	if len(got) != 0 {
		t.Errorf("got %q, want no complaint", got)
	}
}
