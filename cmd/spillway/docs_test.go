//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// triedDocuments have commands that run here. The proxy's own guide has its own tests.
var triedDocuments = []string{"concepts", "tuning", "operations"}

// TestCommandsOfDocuments runs the commands of each document with the configuration before them.
func TestCommandsOfDocuments(t *testing.T) {
	run := 0
	for _, name := range triedDocuments {
		text, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "spillway.yaml")
		dashboard := ""
		for _, f := range fences.FindAllStringSubmatch(string(text), -1) {
			switch f[1] {
			case "yaml":
				free := strings.ReplaceAll(f[2], "127.0.0.1:8000", "127.0.0.1:0")
				if err := os.WriteFile(file, []byte(free), 0o600); err != nil {
					t.Fatal(err)
				}
				if status, _, stderr := spill(t, "check", file); status != 0 {
					t.Errorf("%s: %s\n%s", name, stderr, f[2])
				}
			case "promql":
				checkExpression(t, name, f[2])
			case "sh":
				for line := range strings.Lines(f[2]) {
					dashboard = runDocumented(t, strings.Fields(line), file, dashboard)
					run++
				}
			}
		}
	}
	if run < 7 {
		t.Errorf("only %d commands", run)
	}
}

// flagName matches the name of a flag.
var flagName = regexp.MustCompile(`^--[a-z-]+`)

// runDocumented runs a command of a document, which uses a configuration file and the dashboard of
// the proxy that an earlier command has started. A drill takes too long: it is not run, but its flags
// must exist.
func runDocumented(t *testing.T, words []string, file, dashboard string) (newDashboard string) {
	t.Helper()
	for i, word := range words {
		if word == "spillway.yaml" {
			words[i] = file
		}
	}
	line := strings.Join(words, " ")
	switch {
	case words[0] == "curl":
		url := dashboard + strings.TrimPrefix(words[len(words)-1], "http://127.0.0.1:8001")
		if status, text := told(t, http.MethodGet, url, "", ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", line, status, text)
		}
	case words[0] != "spillway":
		t.Errorf("no test runs %q", line)
	case words[1] == "proxy":
		return dashboardOf(t, start(t, append(words[1:], "--admin=127.0.0.1:0")...))
	case words[1] == "drill":
		help := start(t, "drill", "--help")
		if status := help.status(t); status != 0 {
			t.Fatalf("drill --help: status %d", status)
		}
		for _, word := range words[2:] {
			if !strings.Contains(help.stdout.String(), flagName.FindString(word)+"=") {
				t.Errorf("%s: drill has no flag %s", line, word)
			}
		}
	case words[1] == "sim" && testing.Short():
	default:
		if status, _, stderr := spill(t, words[1:]...); status != 0 {
			t.Errorf("%s: status %d\n%s", line, status, stderr)
		}
	}
	return dashboard
}
