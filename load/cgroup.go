package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// cgroups finds the files of the cgroup of this process. It knows both versions of cgroups at their
// usual mount points.
type cgroups struct {
	mount string // /sys/fs/cgroup
	self  string // /proc/self/cgroup
}

var system = cgroups{mount: "/sys/fs/cgroup", self: "/proc/self/cgroup"}

// dirs returns the directories of a controller, from the cgroup of this process up to the root, and
// the version of cgroups; 0 means none. In a container, the path of the process may be visible only
// on the host: then some of the directories do not exist.
func (c cgroups) dirs(controller string) (dirs []string, version int) {
	data, err := os.ReadFile(c.self)
	if err != nil {
		return nil, 0
	}
	root, at := c.mount, ""
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[1] == "" && version == 0:
			at, version = parts[2], 2
		case hasWord(parts[1], controller):
			root, at, version = path.Join(c.mount, controller), parts[2], 1
		}
	}
	for p := path.Clean("/" + at); version != 0; p = path.Dir(p) {
		dirs = append(dirs, path.Join(root, p))
		if p == "/" {
			break
		}
	}
	return dirs, version
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// A membership watches the cgroup of this process, which may be moved to another one.
type membership struct {
	file

	seen []byte
}

func (c cgroups) membership() (*membership, error) {
	f, err := openFile(c.self)
	if err != nil {
		return nil, err
	}
	f.buf = make([]byte, 8<<10) // version 1 has a line for each controller
	m := &membership{file: f}
	if _, err := m.changed(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// changed reports whether the process was moved since the last call.
func (m *membership) changed() (bool, error) {
	text, err := m.text()
	if err != nil || bytes.Equal(text, m.seen) {
		return false, err
	}
	m.seen = append(m.seen[:0], text...)
	return true, nil
}

// memoryLimits are the limits of all cgroups from that of this process up to the root, in bytes.
type memoryLimits struct {
	groups cgroups
	self   *membership
	files  []file // memory.max, or memory.limit_in_bytes
}

// openMemoryLimits opens the files that may have a limit, now or later.
func openMemoryLimits(c cgroups) (*memoryLimits, error) {
	self, err := c.membership()
	if err != nil {
		return nil, err
	}
	l := &memoryLimits{groups: c, self: self}
	if l.lookUp(); len(l.files) == 0 {
		return nil, errors.Join(errors.New("memory: no cgroup has a limit"), l.Close())
	}
	return l, nil
}

func (l *memoryLimits) lookUp() {
	dirs, version := l.groups.dirs("memory")
	name := [...]string{"", "memory.limit_in_bytes", "memory.max"}[version]
	for _, dir := range dirs {
		if f, err := openFile(path.Join(dir, name)); err == nil {
			l.files = append(l.files, f)
		}
	}
}

// noLimit is the least value that means no limit, in bytes: version 1 has a number for that, too.
const noLimit = 1 << 60

// read returns the lowest limit in bytes, or noLimit. A cgroup that was removed has no limit.
func (l *memoryLimits) read() (float64, error) {
	moved, err := l.self.changed()
	if err != nil {
		return 0, err
	}
	if moved {
		_ = l.closeFiles() // closing a file that was only read cannot lose data
		l.lookUp()
	}
	least := float64(noLimit)
	for i := range l.files {
		text, err := l.files[i].text()
		if v, ok := number(text); ok && err == nil {
			least = min(least, v)
		}
	}
	return least, nil
}

func (l *memoryLimits) closeFiles() error {
	var all []error
	for i := range l.files {
		all = append(all, l.files[i].Close())
	}
	l.files = nil
	return errors.Join(all...)
}

func (l *memoryLimits) Close() error { return errors.Join(l.closeFiles(), l.self.Close()) }

// file is a small file of the kernel that is opened once and read often.
type file struct {
	*os.File
	buf []byte
}

func openFile(name string) (file, error) {
	f, err := os.Open(name)
	return file{f, make([]byte, 1024)}, err
}

// text returns the contents without the last newline. They are valid until the next call.
func (f *file) text() ([]byte, error) {
	n, err := f.ReadAt(f.buf, 0)
	if n == 0 {
		return nil, fmt.Errorf("load: %s: %w", f.Name(), err)
	}
	return bytes.TrimSuffix(f.buf[:n], []byte{'\n'}), nil
}

// field returns the number that follows name at the start of a line of text, or 0.
func field(text []byte, name string) float64 {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if len(line) > len(name) && string(line[:len(name)]) == name {
			v, _ := number(line[len(name):])
			return v
		}
	}
	return 0
}

// number returns the value of text, and whether text consists of decimal digits.
func number(text []byte) (v float64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + float64(c-'0')
	}
	return v, len(text) > 0
}
