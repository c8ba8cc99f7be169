package scenario

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// Builtin returns the scenarios that come with the program, by name.
func Builtin() ([]*Scenario, error) {
	files, err := fs.Glob(builtin, "builtin/*.yaml")
	if err != nil {
		return nil, err
	}
	all := make([]*Scenario, 0, len(files))
	for _, f := range files {
		s, err := parseBuiltin(f)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func parseBuiltin(file string) (*Scenario, error) {
	text, err := builtin.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(path.Base(file), text)
}

// Open reads the scenario in a file, or the built-in one of that name.
func Open(name string) (*Scenario, error) {
	if !strings.ContainsAny(name, `./\`) {
		s, err := parseBuiltin("builtin/" + name + ".yaml")
		if err == nil {
			return s, nil
		}
		if _, missing := os.Stat(name); missing != nil {
			return nil, fmt.Errorf("%s is neither a file nor a built-in scenario: see spillway sim list", name)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Text returns the file of a built-in scenario.
func Text(name string) ([]byte, error) {
	text, err := builtin.ReadFile("builtin/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("%q is no built-in scenario: see spillway sim list", name)
	}
	return text, nil
}

// Schema is the JSON schema of scenario files.
//
//go:embed schema.json
var Schema string
