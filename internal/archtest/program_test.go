package archtest

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// program is where the rooms of the program are, and board where those of the page of operators are, which the program and
// package spilladmin share.
const (
	program = "cmd/spillway/internal/"
	board   = "internal/admin/"
)

// rooms are the packages of the program from the ground up: each imports only rooms of floors
// below its own. Data flow one way: what needs to call back is on the wrong floor.
var rooms = [][]string{
	{"adminclient", "completion", "strict"}, // what both wings use
	{"policyconf"},
	// The gateway.
	{"gateway/config/reach", "gateway/gatewaytest"},
	{"gateway/balance", "gateway/importer/document", "gateway/turns"},
	{"gateway/config"},
	{"gateway/importer", "gateway/keys", "gateway/logs", "gateway/operator", "gateway/resources", "gateway/routes", "gateway/tuner"},
	{"gateway/exporters", "gateway/message", "gateway/mongoproxy/wire", "gateway/quotas"},
	{"gateway/clients", "gateway/upstream"},
	{"gateway/mongoproxy/servers"},
	{"gateway/httpproxy", "gateway/mongoproxy", "gateway/quotaserver", "gateway/xds"},
	{"gateway", "gateway/explain"},
	{"gateway/hostile"},
	// The page of many processes, which reads what the gateway shows.
	{"gateway/top/query"},
	{"gateway/top"},
	// The laboratory.
	{"lab/process"},
	{"lab/load"},
	{"lab/costdrill", "lab/drill", "lab/scenario"},
	{"lab/prediction", "lab/report", "lab/simreport"},
}

// boardRooms are those of the page of operators. The empty one is package admin itself.
var boardRooms = [][]string{
	{"capped", "finite", "histogram", "loglimit", "page", "quotastats", "settings", "textpage"},
	{"human", "kinds", "runbook"},
	{"limits", "slow"},
	{"accounts"},
	{"access", "collector", "decisions", "forecast"},
	{"customers", "incidents", "resets"},
	{""},
}

// TestRooms fails for a package of the program, or of the page of operators, that is on no floor, or imports one that is not
// below it, and for one of the laboratory and one of the gateway that know one another.
func TestRooms(t *testing.T) {
	all, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for house, rooms := range map[string][][]string{program: rooms, board: boardRooms} {
		floors := make(map[string]int)
		for floor, names := range rooms {
			for _, name := range names {
				floors[name] = floor
			}
		}
		seen := 0
		for dir, files := range all.packages {
			room, ok := strings.CutPrefix(dir+"/", house)
			if !ok {
				continue
			}
			seen++
			room = strings.TrimSuffix(room, "/")
			if _, ok := floors[room]; !ok {
				t.Errorf("%s is on no floor: put it into internal/archtest/program_test.go", dir)
			}
			for _, f := range files {
				for _, complaint := range misplaced(house, floors, room, f) {
					t.Error(complaint)
				}
			}
		}
		if seen < 15 {
			t.Errorf("%s has %d rooms, want at least 15", house, seen)
		}
	}
}

// misplaced returns what f, of a room of a house, imports that it must not.
func misplaced(house string, floors map[string]int, room string, f source) (complaints []string) {
	if test, _ := f.test(); test {
		return nil
	}
	for _, spec := range f.Imports {
		other, ok := strings.CutPrefix(importPath(spec)+"/", module+"/"+house)
		if !ok {
			continue
		}
		other = strings.TrimSuffix(other, "/")
		if floors[other] >= floors[room] || wing(room) != wing(other) && slices.Contains([]string{"gateway", "lab"}, wing(other)) {
			complaints = append(complaints, f.name+" imports "+path.Join(house, other)+", which is not below it")
		}
	}
	return complaints
}

// wing returns the part of the program that a room belongs to.
func wing(room string) string {
	first, _, _ := strings.Cut(room, "/")
	return first
}

// mostLines is how long a package of the program or of the page may be, without its tests: what one person
// can read in a day.
const mostLines = 2500

// TestRoomsAreSmall counts the lines of each package.
func TestRoomsAreSmall(t *testing.T) {
	all, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for dir, files := range all.packages {
		if dir != "cmd/spillway" && !strings.HasPrefix(dir, program) && !strings.HasPrefix(dir+"/", board) {
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
			if got := misplaced(program, floors, row.room, f); len(got) > 0 != row.wrong {
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
