package archtest

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// program is where the rooms of the program are.
const program = "cmd/spillway/internal/"

// rooms are the packages of the program from the ground up: each imports only rooms of floors
// below its own. Data flow one way: what needs to call back is on the wrong floor.
var rooms = [][]string{
	{"strict", "page", "ready"}, // what both wings use
	{"strict/stricttest", "policyconf"},
	// The gateway.
	{"gateway/admin/human", "gateway/admin/kinds", "gateway/finite", "gateway/histogram"},
	{"gateway/capped", "gateway/config/reach", "gateway/pooltest", "gateway/textpage", "gateway/slow"},
	{"gateway/accounts", "gateway/admin/limits", "gateway/balance", "gateway/drain", "gateway/frames", "gateway/headers", "gateway/incidents", "gateway/importer/document", "gateway/lines", "gateway/loglimit", "gateway/media", "gateway/memory", "gateway/orca", "gateway/runbook", "gateway/turns"},
	{"gateway/config"},
	{"gateway/body", "gateway/decisions", "gateway/importer", "gateway/keys", "gateway/mongoproxy/message", "gateway/openfiles", "gateway/otel/oteltest", "gateway/routes", "gateway/tuner"},
	{"gateway/admin/access", "gateway/collector", "gateway/customers", "gateway/resets"},
	{"gateway/accesslog", "gateway/clients", "gateway/mongoproxy/link", "gateway/otel", "gateway/quotas", "gateway/upstream"},
	{"gateway/admin", "gateway/mongoproxy/servers"},
	{"gateway/httpproxy", "gateway/mongoproxy", "gateway/quotaserver", "gateway/xds"},
	{"gateway", "gateway/explain"},
	{"gateway/hostile", "gateway/levels"},
	// The page of many processes, which reads what the gateway shows.
	{"gateway/top/query", "gateway/top/terminal"},
	{"gateway/top"},
	{"gateway/top/live"},
	// The laboratory.
	{"lab/process", "lab/sampling"},
	{"lab/costdrill", "lab/drill", "lab/scenario", "lab/target"},
	{"lab/prediction", "lab/report", "lab/simreport"},
}

// TestRooms fails for a package of the program that is on no floor, or imports one that is not
// below it, and for one of the laboratory and one of the gateway that know one another.
func TestRooms(t *testing.T) {
	all, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	floors := make(map[string]int)
	for floor, names := range rooms {
		for _, name := range names {
			floors[name] = floor
		}
	}
	seen := 0
	for dir, files := range all.packages {
		room, ok := strings.CutPrefix(dir, program)
		if !ok {
			continue
		}
		seen++
		if _, ok := floors[room]; !ok {
			t.Errorf("%s is on no floor: put it into internal/archtest/program_test.go", room)
		}
		for _, f := range files {
			for _, complaint := range misplaced(floors, room, f) {
				t.Error(complaint)
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d rooms, want at least 20", seen)
	}
}

// misplaced returns what f, of a room, imports that it must not.
func misplaced(floors map[string]int, room string, f source) (complaints []string) {
	if test, _ := f.test(); test {
		return nil
	}
	for _, spec := range f.Imports {
		other, ok := strings.CutPrefix(importPath(spec), module+"/"+program)
		if !ok {
			continue
		}
		if floors[other] >= floors[room] || wing(room) != wing(other) && slices.Contains([]string{"gateway", "lab"}, wing(other)) {
			complaints = append(complaints, f.name+" imports "+path.Join(program, other)+", which is not below it")
		}
	}
	return complaints
}

// wing returns the part of the program that a room belongs to.
func wing(room string) string {
	first, _, _ := strings.Cut(room, "/")
	return first
}

// mostLines is how long a package of the program may be, without its tests: what one person
// can read in a day.
const mostLines = 2500

// TestRoomsAreSmall counts the lines of each package.
func TestRoomsAreSmall(t *testing.T) {
	all, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for dir, files := range all.packages {
		if dir != "cmd/spillway" && !strings.HasPrefix(dir, program) {
			continue
		}
		lines := 0
		for _, f := range files {
			if test, _ := f.test(); test {
				continue
			}
			text, err := os.ReadFile("../../" + f.name)
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(text), "\n")
		}
		if lines > mostLines {
			t.Errorf("%s has %d lines, want at most %d: split it where one part needs little of the other", dir, lines, mostLines)
		}
	}
}

// TestMisplaced breaks each rule once.
func TestMisplaced(t *testing.T) {
	floors := map[string]int{"page": 0, "gateway/a": 1, "gateway/b": 2, "lab/c": 3}
	for _, row := range []struct {
		room, imports string
		wrong         bool
	}{
		{"gateway/b", "gateway/a", false},
		{"lab/c", "page", false},
		{"gateway/a", "gateway/b", true},
		{"lab/c", "gateway/a", true},
		{"page", "page", true},
	} {
		all, err := load(fsOf(row.room, row.imports))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all.packages[program+row.room] {
			if got := misplaced(floors, row.room, f); len(got) > 0 != row.wrong {
				t.Errorf("%s imports %s: %q", row.room, row.imports, got)
			}
		}
	}
}

// fsOf has one file, of a room, that imports another one.
func fsOf(room, imports string) fstest.MapFS {
	text := "package x; import \"" + module + "/" + program + imports + "\""
	return fstest.MapFS{program + room + "/x.go": {Data: []byte(text)}}
}
