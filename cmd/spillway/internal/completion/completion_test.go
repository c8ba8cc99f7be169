package completion

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// grammar has each kind of what is completed.
type grammar struct {
	Verbose bool `short:"v"`
	Drill   struct {
		Output string `enum:"text,json" default:"text"`
		File   string
		Secret bool `hidden:""`
	} `cmd:""`
	Mode struct {
		Mode string `arg:"" optional:"" enum:",off,observe" default:""`
		Name string `arg:"" optional:""`
	} `cmd:""`
	Quota struct {
		Serve struct{} `cmd:""`
		Check struct{} `cmd:""`
	} `cmd:""`
	Backend struct{} `cmd:"" hidden:""`
}

func parser(t *testing.T) (*kong.Kong, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	k, err := kong.New(&grammar{}, kong.Name("spillway"), kong.Writers(&out, &out))
	if err != nil {
		t.Fatal(err)
	}
	return k, &out
}

func TestCandidates(t *testing.T) {
	k, _ := parser(t)
	for line, want := range map[string]string{
		"":                             "",
		"spill":                        "",
		"spillway ":                    "drill mode quota",
		"spillway d":                   "drill",
		"spillway x":                   "",
		"spillway b":                   "", // hidden
		"spillway -":                   "--help --verbose",
		"spillway drill --":            "--file --help --output --verbose",
		"spillway drill --o":           "--output",
		"spillway drill --output ":     "text json",
		"spillway drill --output=":     "text json",
		"spillway drill --output=j":    "json",
		"spillway drill --none=j":      "",
		"spillway drill --file ":       "", // names of files
		"spillway drill --file mode ":  "",
		"spillway -v drill --output t": "text",
		"spillway mode ":               "off observe",
		"spillway mode ob":             "observe",
		"spillway mode off ":           "", // the second argument may be anything
		"spillway mode off x ":         "",
		"spillway quota ":              "serve check",
		"spillway quota check --":      "--help --verbose",
	} {
		if got := strings.Join(candidates(k.Model.Node, line), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestAnswer: a shell that asks gets one candidate on each line, for what is before the cursor.
func TestAnswer(t *testing.T) {
	k, out := parser(t)
	if Answer(k) {
		t.Error("no shell has asked")
	}
	t.Setenv("COMP_LINE", "spillway quota  and more")
	t.Setenv("COMP_POINT", "15")
	if !Answer(k) || out.String() != "serve\ncheck\n" {
		t.Errorf("%q", out.String())
	}
}

// TestBash has bash read the script, for a program whose path needs quotes, and call what the script names.
func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	program := filepath.Join(t.TempDir(), "it's a program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"asked: $COMP_LINE\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(scripts["bash"], "%[2]s", quoted(quoted(program)))
	cmd := exec.CommandContext(t.Context(), bash, "--norc", "-c", script+`
spec=$(complete -p spillway) && eval "set -- $spec"
while [ "$1" != -C ]; do shift; done
COMP_LINE="spillway dri" eval "$2"`)
	got, err := cmd.CombinedOutput()
	if err != nil || string(got) != "asked: spillway dri\n" {
		t.Errorf("%v: %q", err, got)
	}
}

// TestScripts: each shell that the command names has a script.
func TestScripts(t *testing.T) {
	var c struct {
		Completion Command `cmd:""`
	}
	k, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	shells := values(k.Model.Children[0].Positional[0])
	if len(shells) != len(scripts) || slices.ContainsFunc(shells, func(s string) bool { return scripts[s] == "" }) {
		t.Errorf("the command names %q, and there are %d scripts", shells, len(scripts))
	}
}
