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
	var missing []importer.File
	for _, f := range files {
		exists, err := identical(f)
		if err != nil {
			return usage{err}
		}
		if !exists {
			missing = append(missing, f)
		}
	}
	for i, f := range missing {
		if err := create(f); err != nil {
			for _, written := range missing[:i] {
				err = errors.Join(err, os.Remove(written.Name))
			}
			return usage{fmt.Errorf("--certificates: %w", err)}
		}
	}
	return nil
}

// identical reports whether a file exists as it would be written. It is an error if the file is another one.
func identical(f importer.File) (bool, error) {
	info, err := os.Lstat(f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("--certificates: %w", err)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("--certificates: %s exists and is not a regular file; remove it, or name another directory", f.Name)
	}
	text, err := os.ReadFile(f.Name)
	switch {
	case err != nil:
		return false, fmt.Errorf("--certificates: %w", err)
	case !bytes.Equal(text, f.Text):
		return false, fmt.Errorf("--certificates: %s exists with other content and is not overwritten; remove it, or name another directory", f.Name)
	case f.Private && info.Mode().Perm()&0o077 != 0:
		return false, fmt.Errorf("--certificates: %s is a key that other users can access (mode %04o); chmod 600 it", f.Name, info.Mode().Perm())
	}
	return true, nil
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
