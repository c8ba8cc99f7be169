package operator

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/access"
)

// flags say which proxy is meant, and what authorizes a change.
type flags struct {
	Config string `default:"/etc/spillway/spillway.yaml" placeholder:"FILE" help:"Configuration of the running proxy, with its address for operators and its token file (default ${default})."`
	Admin  string `placeholder:"HOST:PORT" help:"Address for operators, or unix: and the path of a socket; overrides the file."`
	Token  string `name:"token-file" placeholder:"FILE" help:"File with the token for changes; overrides the file. With --admin and this no configuration is read."`
}

// client returns a client of the proxy that the flags and the configuration name. To read over loopback it needs no token.
func (f *flags) client(changes bool) (*client, error) {
	a, err := f.access()
	if err != nil {
		return nil, UsageError{fmt.Errorf("%w; name the configuration with --config, or give --admin and --token-file", err)}
	}
	c := client{address: cmp.Or(f.Admin, a.Address, config.DefaultAdmin), tls: a.TLS}
	if c.address == "off" {
		return nil, UsageError{errors.New("the proxy has no address for operators: admin.address is off")}
	}
	file := cmp.Or(f.Token, a.TokenFile)
	if token := access.File(file); token != nil {
		c.token, err = token()
	}
	switch {
	case !changes:
	case file == "":
		return nil, UsageError{errors.New("a change needs a token: set admin.token_file in the configuration, or give --token-file")}
	case err != nil:
		return nil, fmt.Errorf("the token file %s: %w; run this as the user of the proxy, or as root", file, err)
	}
	return &c, nil
}

// access returns the address for operators as it is configured. Where the flags say all, no file is read: it may be the
// file that is wrong.
func (f *flags) access() (config.Admin, error) {
	if f.Admin != "" && f.Token != "" {
		return config.Admin{}, nil
	}
	text, err := os.ReadFile(f.Config)
	if errors.Is(err, fs.ErrNotExist) && f.Admin != "" {
		return config.Admin{}, nil
	}
	if err != nil {
		return config.Admin{}, err
	}
	c, err := config.Parse(f.Config, text)
	if err != nil {
		return config.Admin{}, err
	}
	return c.Admin, nil
}
