package main

import (
	"cmp"
	"errors"
)

// configFile is the configuration of a command: an argument, or a flag for users who set it in the
// environment.
type configFile struct {
	File   string `arg:"" optional:"" help:"Configuration file; omit it with --config."`
	Config string `placeholder:"FILE" help:"Configuration file, in place of the argument."`
}

// named sets File to the configuration that was named.
func (c *configFile) named() error {
	if c.File = cmp.Or(c.File, c.Config); c.File == "" {
		return usage{errors.New("no configuration: name a FILE, or give --config=FILE")}
	}
	return nil
}
