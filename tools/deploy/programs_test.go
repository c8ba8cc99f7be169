//go:build thorough

package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// runs a program in a directory. Its error has what the program says.
func runs(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return string(out), err
}

func rules(name string) func(dir string) error {
	return func(dir string) error {
		_, err := runs(dir, "promtool", "check", "rules", name)
		return err
	}
}

func rulesTest(name string) func(dir string) error {
	return func(dir string) error {
		_, err := runs(dir, "promtool", "test", "rules", name)
		return err
	}
}

// unit checks the systemd unit with a program that exists. systemd-analyze ignores what it does not
// know: it prints a line about it and reports no error. It also prints lines about units of the machine.
func unit(dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "spillway.service")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text = []byte(strings.ReplaceAll(string(text), "/usr/local/bin/spillway", program))
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return err
	}
	out, err := runs(dir, "systemd-analyze", "verify", "--man=no", name)
	problems := []error{err}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "spillway.service") {
			problems = append(problems, errors.New(line))
		}
	}
	return errors.Join(problems...)
}

// A dashboard is what is checked of one.
type dashboard struct {
	Panels []struct {
		ID          int
		Title, Type string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
	Templating struct{ List []struct{ Name string } }
}

var variable = regexp.MustCompile(`\$\{?(\w+)\}?`)

// grafana checks the expressions of the dashboard with promtool, and that each panel is of a known type and has an id
// and a place that no other panel has. Grafana itself has no program that checks a dashboard.
func grafana(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "grafana.json"))
	if err != nil {
		return err
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	known := map[string]string{"__rate_interval": "5m", "__range": "5m"}
	for _, v := range d.Templating.List {
		known[v.Name] = "x"
	}
	problems := d.places()
	var rules []map[string]string
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			expr := variable.ReplaceAllStringFunc(x.Expr, func(v string) string {
				name := strings.Trim(v, "${}")
				if known[name] == "" {
					problems = append(problems, fmt.Errorf("%s: there is no variable %s", p.Title, v))
				}
				return known[name]
			})
			rules = append(rules, map[string]string{"record": fmt.Sprint("expression:", len(rules)), "expr": expr})
		}
	}
	all, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "expressions.yaml"), all, 0o600); err != nil { // JSON is YAML
		return err
	}
	_, err = runs(dir, "promtool", "check", "rules", "expressions.yaml")
	return errors.Join(append(problems, err)...)
}

// places returns what is wrong with the types, the ids and the places of the panels. A row has 24 columns.
func (d *dashboard) places() (problems []error) {
	ids, taken := make(map[int]bool), make(map[[2]int]bool)
	for _, p := range d.Panels {
		if !slices.Contains([]string{"timeseries", "stat", "table"}, p.Type) || p.ID == 0 || ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			problems = append(problems, fmt.Errorf("%s: %+v", p.Title, p))
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[cell] {
					return append(problems, fmt.Errorf("%s: its place is taken", p.Title))
				}
				taken[cell] = true
			}
		}
	}
	return problems
}
