package scenario

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// Builtin returns the scenarios that come with the program, by name.
func Builtin() ([]*Scenario, error) {
	files, err := builtin.ReadDir("builtin")
	if err != nil {
		return nil, err
	}
	all := make([]*Scenario, len(files))
	for i, f := range files {
		if all[i], err = Open(strings.TrimSuffix(f.Name(), ".yaml")); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Open reads the built-in scenario of that name, or the one in a file.
func Open(name string) (*Scenario, error) {
	if text, err := Text(name); err == nil {
		return Parse(name+".yaml", text)
	}
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, `./\`):
		return nil, fmt.Errorf("%s is neither a file nor a built-in scenario: see spillway sim list", name)
	case err != nil:
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
