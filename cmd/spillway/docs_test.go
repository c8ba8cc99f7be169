//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rate_limit_quota/v3" // of the file of Envoy
	_ "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"                             // likewise
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/snippets"
)

// TestDocuments loads the files that documents show, and runs the commands with the file before them.
func TestDocuments(t *testing.T) {
	all, err := snippets.All(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	var d document
	n := 0
	for _, s := range all {
		if !s.Is(snippets.Program) {
			continue
		}
		if n++; s.File != d.name {
			d.begin(t, s.File)
		}
		switch s.Kind {
		case "yaml":
			d.load(t, s)
		case "promql":
			checkExpression(t, s.String(), s.Text)
		case "sh":
			for i, command := range s.Commands() {
				if s.By()[i] == snippets.Program {
					d.runs(t, s, command)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d snippets", n)
	}
}

// A document is what a reader of one has.
type document struct {
	name, dir, dashboard string
}

// begin starts another document in an empty directory, which has the files that a reader brings.
func (d *document) begin(t *testing.T, name string) {
	t.Helper()
	d.name, d.dir, d.dashboard = name, t.TempDir(), ""
	for file, from := range map[string]string{"service-config.json": "grpc.json", "bootstrap.yaml": "envoy.yaml", "mongod.conf": "mongod.yaml"} {
		text, err := os.ReadFile("internal/gateway/importer/testdata/" + from)
		if err != nil {
			t.Fatal(err)
		}
		d.write(t, file, string(text))
	}
}

func (d *document) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// load checks a file in YAML: of Envoy, of "spillway quota", or else of "spillway proxy". The last one
// is kept for the commands that follow.
func (d *document) load(t *testing.T, s snippets.Snippet) {
	t.Helper()
	switch {
	case strings.Contains(s.Text, "typed_config:"):
		if err := checkEnvoyFilter(s.Text); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	case strings.HasPrefix(s.Text, "domain:"):
		d.write(t, "quota.yaml", s.Text)
		if _, err := config.ParseQuotaServer(s.String(), []byte(s.Text)); err != nil {
			t.Error(err)
		}
	default:
		text := strings.ReplaceAll(s.Text, "127.0.0.1:8000", "127.0.0.1:0")
		d.write(t, "spillway.yaml", strings.ReplaceAll(text, "token_file: token}", "token_file: "+filepath.Join(d.dir, "token")+"}"))
		if _, err := config.Parse(s.String(), []byte(s.Text)); err != nil {
			t.Error(err)
		}
	}
}

// checkEnvoyFilter decodes filters of Envoy in YAML.
func checkEnvoyFilter(text string) error {
	var filters []struct {
		Name   string
		Config map[string]any `yaml:"typed_config"`
	}
	if err := yaml.Unmarshal([]byte(text), &filters); err != nil {
		return err
	}
	for _, f := range filters {
		encoded, err := json.Marshal(f.Config)
		if err != nil {
			return err
		}
		if err := protojson.Unmarshal(encoded, new(anypb.Any)); err != nil {
			return err
		}
	}
	return nil
}

var (
	shellWord = regexp.MustCompile(`'[^']*'|[^' ]+`)
	flagName  = regexp.MustCompile(`^--[a-z-]+`)
	// elsewhere are the commands that need another system, or a minute: only their flags are checked.
	elsewhere = map[string][]string{"drill": {"drill"}, "tune": {"tune"}, "mode": {"mode"}, "top": {"top"}, "quota": {"quota", "serve"}}
	// ofQuota are the commands of quota that end by themselves.
	ofQuota = map[string]bool{"check": true, "explain": true, "schema": true}
)

// runs runs a command of a document.
func (d *document) runs(t *testing.T, s snippets.Snippet, command string) {
	t.Helper()
	if _, inPod, ok := strings.Cut(strings.TrimSuffix(command, "; done"), " -- /"); ok {
		command = inPod
	}
	command = strings.TrimPrefix(command, "sudo ")
	command, output, _ := strings.Cut(command, " > ")
	words := shellWord.FindAllString(strings.Replace(command, "go run ./cmd/spillway", "spillway", 1), -1)
	for i, word := range words {
		words[i] = strings.Trim(word, "'")
		if _, err := os.Stat(filepath.Join(d.dir, word)); err == nil {
			words[i] = filepath.Join(d.dir, word)
		}
	}
	switch {
	case words[0] == "curl":
		d.asks(t, s, command)
	case words[1] == "token":
		d.succeeds(t, s, words[1], filepath.Join(d.dir, words[2]))
	case words[1] == "mode" && d.dashboard != "":
		d.succeeds(t, s, append(words[1:], "--admin="+strings.TrimPrefix(d.dashboard, "http://"))...)
	case words[1] == "proxy":
		d.dashboard = dashboardOf(t, start(t, append(words[1:], "--admin=127.0.0.1:0")...))
	case elsewhere[words[1]] != nil && !(len(words) > 2 && ofQuota[words[2]]):
		help := start(t, append(elsewhere[words[1]], "--help")...)
		if status := help.status(t); status != 0 {
			t.Fatalf("%s --help: status %d", words[1], status)
		}
		for _, word := range words[2:] {
			if !strings.Contains(help.stdout.String(), flagName.FindString(word)) {
				t.Errorf("%s: %s: there is no flag %s", s, command, word)
			}
		}
	case words[1] == "sim" && testing.Short():
	default:
		if stdout := d.succeeds(t, s, words[1:]...); output != "" {
			d.write(t, output, stdout)
		}
	}
}

// succeeds runs the program and returns what it prints.
func (d *document) succeeds(t *testing.T, s snippets.Snippet, args ...string) string {
	t.Helper()
	status, stdout, stderr := spill(t, args...)
	if status != 0 {
		t.Errorf("%s: %v: status %d\n%s", s, args, status, stderr)
	}
	return stdout
}

// asks sends a request to the admin address of the proxy that an earlier command has started. One
// that changes something is sent with the token that an earlier command has made, or is rejected because there is none.
func (d *document) asks(t *testing.T, s snippets.Snippet, command string) {
	t.Helper()
	_, path, _ := strings.Cut(command, "http://127.0.0.1:8001")
	method, want, body, token := http.MethodGet, http.StatusOK, "", ""
	if _, data, ok := strings.Cut(command, " -d "); ok {
		method, want = http.MethodPost, http.StatusForbidden
		body, _, _ = strings.Cut(data, " ")
	} else if strings.Contains(command, " -X POST ") {
		method, want = http.MethodPost, http.StatusForbidden
	}
	if strings.Contains(command, "$(cat token)") {
		text, err := os.ReadFile(filepath.Join(d.dir, "token"))
		if err != nil {
			t.Fatal(err)
		}
		want, token = http.StatusOK, strings.TrimSpace(string(text))
	}
	if status, text := told(t, method, d.dashboard+path, body, token); status != want {
		t.Errorf("%s: %s: %d %s", s, command, status, text)
	}
}
