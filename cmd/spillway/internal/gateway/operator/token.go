package operator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/seed90641741/spillway/internal/admin/access"
)

// TokenCommand has the argument of "spillway token".
type TokenCommand struct {
	File string `arg:"" help:"File with the token, admin.token_file of the configuration."`
}

// Help returns what is added to the help of the command.
func (TokenCommand) Help() string {
	return "Makes a random token in a file that only this user can read. A file with a token is kept, so it can run before each start of the proxy."
}

// Run makes the file in one step: a crash leaves none that is empty.
func (c *TokenCommand) Run(k *kong.Context) error {
	done := "kept"
	_, err := access.File(c.File)()
	if errors.Is(err, fs.ErrNotExist) {
		done, err = "made", makeToken(c.File)
	}
	if err != nil {
		return fmt.Errorf("the token file %s: %w", c.File, err)
	}
	_, err = fmt.Fprintf(k.Stdout, "%s: %s\n", done, c.File)
	return err
}

func makeToken(name string) error {
	made, err := os.CreateTemp(filepath.Dir(name), ".token-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(made.Name()) }() // once it is renamed there is nothing to remove
	_, err = made.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, made.Close()); err != nil {
		return err
	}
	return os.Rename(made.Name(), name)
}
