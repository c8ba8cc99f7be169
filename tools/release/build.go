package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// build installs the program for each platform as a user would, from the module proxy
// that was written, and writes bills of materials and checksums.
func (r *release) build(proxy, out string, platforms []string, verify bool) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, platform := range platforms {
		system, arch, _ := strings.Cut(platform, "/")
		name := filepath.Join(out, fmt.Sprintf("spillway_%s_%s_%s", r.version, system, arch))
		if err := r.install(proxy, name, system, arch, ""); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		if verify {
			if err := r.reproduce(proxy, name, system, arch); err != nil {
				return fmt.Errorf("%s: %w", platform, err)
			}
			fmt.Fprintf(os.Stdout, "%s: two builds, the same bytes\n", platform)
		}
		if err := r.writeBill(name); err != nil {
			return err
		}
		for _, name := range []string{name, name + billSuffix} {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line := fmt.Sprintf("%x  %s\n", sha256.Sum256(text), filepath.Base(name))
			fmt.Fprint(os.Stdout, line)
			sums.WriteString(line)
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// reproduce builds the program once more, with nothing from the build cache, and returns
// an error unless it is the same.
func (r *release) reproduce(proxy, name, system, arch string) error {
	dir, err := os.MkdirTemp("", "reproduce")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	again := filepath.Join(dir, "spillway")
	if err := r.install(proxy, again, system, arch, filepath.Join(dir, "cache")); err != nil {
		return err
	}
	a, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(again)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("a second build gave another program: %x, then %x", sha256.Sum256(a), sha256.Sum256(b))
	}
	return nil
}

// install builds the program with go install, in directories that are empty but for what
// the module cache of this machine has of other modules. An empty name of a build cache
// is that of this machine.
func (r *release) install(proxy, name, system, arch, cache string) error {
	gopath, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(gopath) }()
	env, err := installEnv(proxy, gopath, r.prefix)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "install", "-trimpath", "-modcacherw", "-buildvcs=false", "-ldflags=-s -w", r.prefix+"/cmd/spillway@"+r.version)
	cmd.Dir = gopath
	env = append(env, "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if cache != "" {
		env = append(env, "GOCACHE="+cache)
	}
	cmd.Env = env
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go install: %w\n%s", err, text)
	}
	made := filepath.Join(gopath, "bin", system+"_"+arch, "spillway")
	if system == runtime.GOOS && arch == runtime.GOARCH {
		made = filepath.Join(gopath, "bin", "spillway")
	}
	text, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o755)
}

// installEnv is the environment of a user who has nothing but the modules in proxy and,
// so that nothing is downloaded twice, what the module cache has of all others.
func installEnv(proxy, gopath, prefix string) ([]string, error) {
	text, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY", "GOCACHE").Output()
	if err != nil {
		return nil, err
	}
	is := strings.Split(strings.TrimSpace(string(text)), "\n")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GO") })
	return append(env,
		"GOPATH="+gopath, "GOCACHE="+is[2], "GOWORK=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(is[0], "cache", "download")+","+is[1],
		"GONOSUMDB="+prefix, // these are not published yet, so no database of checksums has them
	), nil
}
