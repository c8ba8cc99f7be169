// Command release makes a release of all modules of this repository that users import or
// install: zip files in the layout of a GOPROXY, which any file server can serve, and the
// program for each platform with checksums and a bill of materials.
//
//	release --version v0.1.0 --out dist/release/v0.1.0
//
// The same commit gives the same bytes. Requirements of one module on another get the
// version of the release, and replace directives between them are left out.
//
// With --try it makes only the zip files, in seconds and of the files as they are, and
// prints how to use them:
//
//	release --version v0.1.0 --try dist/try
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	version := flag.String("version", "", "version of all modules, such as v0.1.0")
	out := flag.String("out", "dist/release", "directory that gets the files")
	verify := flag.Bool("verify", false, "build each program a second time, with an empty build cache, and compare")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "platforms of the program")
	dir := flag.String("try", "", "in place of a release, make a module proxy of the files as they are in this directory")
	flag.Parse()
	err := checkVersion(*version)
	switch {
	case err != nil:
	case *dir != "":
		err = try(*version, *dir, os.Stdout, os.Stderr)
	default:
		err = run(*version, *out, strings.Split(*platforms, ","), *verify)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func checkVersion(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("--version is %q, must be a semantic version such as v0.1.0", version)
	}
	return nil
}

// run makes a release in the directory out, with programs for the given platforms.
func run(version, out string, platforms []string, verify bool) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	r, err := open(version, false)
	if err != nil {
		return err
	}
	proxy := filepath.Join(out, "proxy")
	if err := r.publishAll(proxy, os.Stdout); err != nil {
		return err
	}
	return r.build(proxy, filepath.Join(out, "bin"), platforms, verify)
}

// publishAll publishes all modules, and prints each to w.
func (r *release) publishAll(proxy string, w io.Writer) error {
	for _, m := range r.modules {
		if err := r.publish(m, proxy); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		fmt.Fprintf(w, "%s@%s\n", m.path, r.version)
	}
	return nil
}
