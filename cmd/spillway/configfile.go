package main

import "errors"

// configFile has the flag by which commands that read a configuration take its name, for
// users who set it in the environment. As an argument it is shorter.
type configFile struct {
	Config string `placeholder:"FILE" help:"A configuration of spillway proxy, in place of the argument."`
}

// named sets *arg, the argument, to the one file that was named.
func (c *configFile) named(arg *string) error {
	switch {
	case *arg == "" && c.Config == "":
		return usage{errors.New("no configuration: name a FILE, or give --config=FILE")}
	case *arg == "":
		*arg = c.Config
	}
	return nil
}
