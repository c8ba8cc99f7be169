package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// try writes the modules as they are in the files now to a module proxy in the directory dir. It prints the command of a
// shell that makes go get and go install find them to out, and what else a person needs to notes.
func try(base, dir string, out, notes io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r, err := open(base, true)
	if err != nil {
		return err
	}
	if r.version, err = r.tryVersion(base); err != nil {
		return err
	}
	// Only the newest version is left, so it is the latest one for the go command.
	if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(r.prefix))); err != nil {
		return err
	}
	if err := r.publishAll(dir, io.Discard); err != nil {
		return err
	}
	fmt.Fprintf(notes, "%s has the modules of this checkout as they are now, version %s.\n", dir, r.version)
	fmt.Fprint(notes, "Paste this line into a shell. In it go get and go install find them:\n\n")
	fmt.Fprintln(out, exportLine(dir, r.prefix))
	fmt.Fprintf(notes, "\nThen, in an empty directory outside of the checkout:\n\ngo mod init example.com/shop\ngo get %s\n", r.prefix)
	return nil
}

// tryVersion returns a version before base that names the content of the files: the module cache of a user keeps each
// version forever, so other files need another version, and none of them may be that of a release.
func (r *release) tryVersion(base string) (string, error) {
	sum := sha256.New()
	for _, name := range r.files {
		text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return fmt.Sprintf("%s-try.%s-%x", base, r.time.UTC().Format("20060102150405"), sum.Sum(nil)[:6]), nil
}

// exportLine returns a command of a shell that puts the module proxy in dir before those that the user has. No database of
// checksums has its modules, whose paths begin with prefix.
func exportLine(dir, prefix string) string {
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
	// GOPROXY is separated by commas, and a shell replaces what follows a dollar sign.
	quoted := strings.NewReplacer(",", "%2C", "$", "%24").Replace(address.String())
	return fmt.Sprintf(`export GOPROXY="%s,$(go env GOPROXY)" GONOSUMDB="%s,$(go env GONOSUMDB)"`, quoted, prefix)
}

// present removes the files that git knows and that are deleted, and new ones that no module can have, such as a socket.
func (r *release) present() {
	r.files = slices.DeleteFunc(r.files, func(name string) bool {
		info, err := os.Lstat(filepath.Join(r.root, filepath.FromSlash(name)))
		return err != nil || !info.Mode().IsRegular() || module.CheckFilePath(name) != nil
	})
}
