package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// A release is what a commit becomes.
type release struct {
	version string
	time    time.Time // of the commit
	root    string    // directory of the repository
	files   []string  // that git knows, relative to root, with slashes
	nested  []string  // directories of all modules but the one at the root
	prefix  string    // path of the module at the root
	modules []released
}

// A released module is one that users import or install.
type released struct{ path, dir string }

// open reads the repository around the working directory, which must be a clone.
func open(version string, dirty bool) (*release, error) {
	root, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("run this in a clone of the repository: %w", err)
	}
	r := &release{version: version, root: strings.TrimSpace(root)}
	if err := r.commit(dirty); err != nil {
		return nil, err
	}
	for _, name := range r.files {
		if dir, ok := strings.CutSuffix(name, "/go.mod"); ok && !strings.Contains(name, "testdata/") {
			r.nested = append(r.nested, dir)
		}
	}
	r.prefix, err = r.pathOf(".")
	if err != nil {
		return nil, err
	}
	for _, dir := range append([]string{"."}, r.nested...) {
		if !public(dir) {
			continue
		}
		p, err := r.pathOf(dir)
		if err != nil {
			return nil, err
		}
		r.modules = append(r.modules, released{p, dir})
	}
	return r, nil
}

// commit reads what git knows of the commit that is checked out. Unless dirty is set, the
// files must be as they are in it. With it, changed and new files are as they are on disk.
func (r *release) commit(dirty bool) error {
	changed, err := git(r.root, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	if changed != "" && !dirty {
		return fmt.Errorf("there are changes that are not committed:\n%s", changed)
	}
	when, err := git(r.root, "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	if r.time, err = time.Parse(time.RFC3339, strings.TrimSpace(when)); err != nil {
		return err
	}
	list := []string{"ls-files", "-z"}
	if dirty {
		list = append(list, "--cached", "--others", "--exclude-standard")
	}
	names, err := git(r.root, list...)
	r.files = strings.Split(strings.TrimSuffix(names, "\x00"), "\x00")
	if dirty {
		r.present()
	}
	return err
}

// public reports whether the module in dir is released: the library, its adapters, which
// are all called spill*, the program, and what users' tests import. The others are for work on
// this repository.
func public(dir string) bool {
	return dir == "." || dir == "cmd/spillway" || dir == "spillmongo/mongotest" || strings.HasPrefix(dir, "spill") && !strings.Contains(dir, "/")
}

// pathOf returns the path of the module in dir.
func (r *release) pathOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, dir, "go.mod"))
	return modfile.ModulePath(text), err
}

// publish writes the files of one module to a directory with the layout of a GOPROXY.
func (r *release) publish(m released, proxy string) error {
	mod, err := r.mod(m.dir)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(m.path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": r.version, "Time": r.time.UTC()})
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	if err := zip.Create(&zipped, module.Version{Path: m.path, Version: r.version}, r.contents(m.dir, mod)); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"list": []byte(r.version + "\n"), r.version + ".info": info, r.version + ".mod": mod, r.version + ".zip": zipped.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// mod returns the go.mod of the module in dir as it is released.
func (r *release) mod(dir string) ([]byte, error) {
	name := filepath.Join(r.root, dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, q := range slices.Clone(f.Require) {
		if r.ours(q.Mod.Path) {
			if err := f.AddRequire(q.Mod.Path, r.version); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range slices.Clone(f.Replace) {
		if !r.ours(p.Old.Path) {
			return nil, fmt.Errorf("go.mod replaces %s, which users of the module would not get", p.Old.Path)
		}
		if err := f.DropReplace(p.Old.Path, p.Old.Version); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// ours reports whether a module is of this repository.
func (r *release) ours(p string) bool {
	return p == r.prefix || strings.HasPrefix(p, r.prefix+"/")
}

// contents returns the files of the module in dir, with its go.mod as it is released, and
// the licence of the repository.
func (r *release) contents(dir string, mod []byte) (all []zip.File) {
	all = append(all, file{name: "go.mod", text: mod})
	licensed := false
	for _, name := range r.files {
		within, ok := r.within(dir, name)
		if !ok || within == "go.mod" {
			continue
		}
		licensed = licensed || within == "LICENSE"
		all = append(all, file{name: within, on: filepath.Join(r.root, filepath.FromSlash(name))})
	}
	if !licensed {
		all = append(all, file{name: "LICENSE", on: filepath.Join(r.root, "LICENSE")})
	}
	return all
}

// within returns the name of a file inside the module in dir, and whether it is of that
// module and not of one that is nested in it.
func (r *release) within(dir, name string) (string, bool) {
	at := path.Dir(name)
	for at != "." && !slices.Contains(r.nested, at) {
		at = path.Dir(at)
	}
	if at != dir {
		return "", false
	}
	return strings.TrimPrefix(name, strings.TrimPrefix(dir+"/", "./")), true
}

// A file is one of a module: one on disk, or a text.
type file struct {
	name, on string
	text     []byte
}

func (f file) Path() string { return f.name }

func (f file) Lstat() (fs.FileInfo, error) {
	if f.on != "" {
		return os.Lstat(f.on)
	}
	return textInfo(f), nil
}

func (f file) Open() (io.ReadCloser, error) {
	if f.on != "" {
		return os.Open(f.on)
	}
	return io.NopCloser(bytes.NewReader(f.text)), nil
}

// textInfo is the [fs.FileInfo] of a text.
type textInfo file

func (i textInfo) Name() string     { return path.Base(i.name) }
func (i textInfo) Size() int64      { return int64(len(i.text)) }
func (textInfo) Mode() fs.FileMode  { return 0o644 }
func (textInfo) ModTime() time.Time { return time.Time{} }
func (textInfo) IsDir() bool        { return false }
func (textInfo) Sys() any           { return nil }

// git runs git in dir. The files may belong to another user.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %s", args[0], failed.Stderr)
	}
	return string(out), err
}
