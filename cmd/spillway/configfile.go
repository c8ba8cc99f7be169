package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// configFile is the configuration of a command: an argument, or a flag for users who set it in the
// environment.
type configFile struct {
	File   string `arg:"" optional:"" help:"Configuration file; omit it with --config."`
	Config string `placeholder:"FILE" help:"Configuration file, in place of the argument."`
}

func (c *configFile) named() error {
	if c.File = cmp.Or(c.File, c.Config); c.File == "" {
		return usage{errors.New("no configuration: name a FILE, or give --config=FILE")}
	}
	return nil
}

// hostPort returns an error if the address in a flag is none to listen on.
func hostPort(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--%s is %.64q, must be a host and a port, such as 127.0.0.1:8001", flag, address)
	}
	return nil
}
