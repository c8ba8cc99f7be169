//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A layout is how a deployment runs the program: each command in turn, the last one is the proxy.
type layout struct {
	config   string     // of the proxy
	commands [][]string // without the name of the program
	does     string     // in the runbook: the emergency switch
}

// layouts returns the deployments that are shipped.
func layouts(t *testing.T) map[string]layout {
	t.Helper()
	unit := layout{config: string(deployed(t, "spillway.yaml")), does: "\nsudo spillway mode observe #"}
	for line := range strings.Lines(string(deployed(t, "spillway.service"))) {
		key, command, _ := strings.Cut(strings.TrimSpace(line), "=")
		if args, ok := strings.CutPrefix(command, "/usr/local/bin/spillway "); ok && (key == "ExecStartPre" || key == "ExecStart") {
			unit.commands = append(unit.commands, strings.Fields(args))
		}
	}
	pod := layout{does: "-c spillway -- /spillway mode observe; done #"}
	documents := yaml.NewDecoder(strings.NewReader(string(deployed(t, "kubernetes.yaml"))))
	for range 2 {
		var object struct {
			Data map[string]string
			Spec struct {
				Template struct {
					Spec struct {
						InitContainers []struct{ Args []string } `yaml:"initContainers"` //nolint:tagliatelle // as Kubernetes spells it
					}
				}
			}
		}
		if err := documents.Decode(&object); err != nil {
			t.Fatal(err)
		}
		pod.config += object.Data["spillway.yaml"]
		for _, c := range object.Spec.Template.Spec.InitContainers {
			pod.commands = append(pod.commands, c.Args)
		}
	}
	return map[string]layout{"systemd": unit, "kubernetes": pod}
}

// TestSwitch starts the proxy as each deployment does, and has it observe with the command of the runbook.
func TestSwitch(t *testing.T) {
	guide, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(guide), "\n## ")
	for name, l := range layouts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(first, l.does) {
				t.Errorf("the runbook does not begin with %q", l.does)
			}
			dir := t.TempDir()
			admin := l.install(t, dir)
			n := len(l.commands) - 1
			for _, args := range l.commands[:n] {
				if status, _, errs := spillwayWith(t, nil, args...); status != exitOK {
					t.Fatalf("%v: status %d: %s", args, status, errs)
				}
			}
			start(t, l.commands[n]...).waitFor(t, `"dashboard"`)
			config := "--config=" + filepath.Join(dir, "etc/spillway/spillway.yaml") // where the command looks by default
			if status, out, errs := spillwayWith(t, nil, "mode", "observe", config); status != exitOK {
				t.Errorf("status %d: %s%s", status, out, errs)
			}
			awaits(t, admin+"/debug/config", "the configuration says enforce")
			if status, out, errs := spillwayWith(t, nil, "mode", "file", "--yes", config); status != exitOK {
				t.Errorf("status %d: %s%s", status, out, errs)
			}
			awaits(t, admin+"/metrics", "spillway_overrides 0")
		})
	}
}

// install puts the configuration into a directory, enforced and at other ports, and has the commands use this directory.
// It returns where operators look.
func (l *layout) install(t *testing.T, dir string) (admin string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close() // before the proxy is started
	port := fmt.Sprintf(":%d", free.Addr().(*net.TCPAddr).Port)
	moved := strings.NewReplacer("/etc/spillway", filepath.Join(dir, "etc/spillway"), "/run/spillway", filepath.Join(dir, "run/spillway"),
		"mode: observe", "mode: enforce", "0.0.0.0:8000", "127.0.0.1:0", ":8001", port)
	for _, args := range l.commands {
		for i := range args {
			args[i] = moved.Replace(args[i])
		}
	}
	for _, name := range []string{"etc/spillway", "run/spillway"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/spillway/spillway.yaml"), []byte(moved.Replace(l.config)), 0o600); err != nil {
		t.Fatal(err)
	}
	return "http://127.0.0.1" + port
}
