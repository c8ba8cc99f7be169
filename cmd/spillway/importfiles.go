package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer"
)

// writeCertificates writes files that do not exist yet, into one directory, which is made if its parent exists. It
// writes all or none, and changes no file.
func writeCertificates(files []importer.File) error {
	var written []string
	for _, f := range files {
		err := create(f)
		switch {
		case err == nil:
			written = append(written, f.Name)
		case errors.Is(err, fs.ErrExist):
			err = identical(f)
		}
		if err != nil {
			for _, name := range written {
				err = errors.Join(err, os.Remove(name))
			}
			return usage{fmt.Errorf("--certificates: %w", err)}
		}
	}
	return nil
}

// identical returns an error unless a file is as it would be written.
func identical(f importer.File) error {
	info, err := os.Lstat(f.Name)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s exists and is not a regular file; remove it, or name another directory", f.Name)
	}
	text, err := os.ReadFile(f.Name)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(text, f.Text):
		return fmt.Errorf("%s exists with other content and is not overwritten; remove it, or name another directory", f.Name)
	case f.Private && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is a key that other users can access (mode %04o); chmod 600 it", f.Name, info.Mode().Perm())
	}
	return nil
}

// create writes a new file. It follows no symbolic link.
func create(f importer.File) error {
	if err := os.Mkdir(filepath.Dir(f.Name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode := fs.FileMode(0o644)
	if f.Private {
		mode = 0o600
	}
	w, err := os.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = w.Write(f.Text)
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name))
	}
	return nil
}
