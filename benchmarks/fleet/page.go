package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

// Files below the root of the repository.
const (
	recordFile  = "benchmarks/fleet/record.json"
	pageFile    = "docs/scale.md"
	pictureFile = "docs/pictures/board-away.svg"
)

// A Record is the results of all scenarios, and where they were computed.
type Record struct {
	Time        time.Time           `json:"time"`
	Machine     machine.Description `json:"machine"` // which matters for the processor times in a Cost only
	CPUPressure *float64            `json:"cpu_pressure"`
	Results     []*Result           `json:"results"`
}

func readRecord(root string) (*Record, error) {
	text, err := os.ReadFile(filepath.Join(root, recordFile))
	if err != nil {
		return nil, err
	}
	r := new(Record)
	return r, json.Unmarshal(text, r)
}

// write stores r, a line for each result.
func (r *Record) write(root string) error {
	head := *r
	head.Results = nil
	text, err := json.MarshalIndent(head, "", "\t")
	if err != nil {
		return err
	}
	var lines []string
	for _, result := range r.Results {
		line, err := json.Marshal(result)
		if err != nil {
			return err
		}
		lines = append(lines, "\t\t"+string(line))
	}
	all := strings.Replace(string(text), `"results": null`, "\"results\": [\n"+strings.Join(lines, ",\n")+"\n\t]", 1)
	return os.WriteFile(filepath.Join(root, recordFile), []byte(all+"\n"), 0o644) //nolint:gosec // a file of the repository
}

// writePage writes the tables of the page, and its picture.
func writePage(root string, r *Record) error {
	name := filepath.Join(root, pageFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	filled, err := r.fill(text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, filled, 0o644); err != nil { //nolint:gosec // a page of the repository
		return err
	}
	return os.WriteFile(filepath.Join(root, pictureFile), []byte(r.picture()), 0o644) //nolint:gosec // a file of the repository
}

// onPage is what the page shows of r: a small and a large size. Zones are for the command, as regions replace them.
func (r *Record) onPage() *Record {
	some := new(Record)
	for _, x := range r.Results {
		if (x.Tasks == 100 || x.Tasks == 10_000) && !strings.HasPrefix(x.Scenario, "4 zones") {
			some.Results = append(some.Results, x)
		}
	}
	return some
}

// fill returns a page with its tables.
func (r *Record) fill(text []byte) ([]byte, error) {
	for name, table := range map[string]string{"accuracy": r.onPage().accuracy(), "costs": r.onPage().costs()} {
		begin, end := []byte("<!-- fleet: "+name+" -->\n"), []byte("<!-- end -->")
		before, rest, found := bytes.Cut(text, begin)
		_, after, ended := bytes.Cut(rest, end)
		if !found || !ended {
			return nil, fmt.Errorf("%s has no table %q", pageFile, name)
		}
		text = bytes.Join([][]byte{before, begin, []byte("\n" + table + "\n"), end, after}, nil)
	}
	return text, nil
}

// accuracy is the table of what was admitted.
func (r *Record) accuracy() string {
	var rows []string
	cells := map[string]map[int]string{}
	put := func(row string, tasks int, cell string) {
		if cells[row] == nil {
			cells[row] = map[int]string{}
			rows = append(rows, row)
		}
		cells[row][tasks] = cell
	}
	for _, x := range r.Results {
		for _, m := range x.Spans {
			row := x.Scenario
			if m.Name != "" {
				row += ": " + m.Name
			}
			put(row, x.Tasks, fmt.Sprintf("%.2f (%.2f to %.2f)", m.Mean, m.Least, m.Most))
		}
		if x.Scenario == belowLimit {
			put(x.Scenario+": calls rejected", x.Tasks, number(float64(x.Rejected)))
		}
	}
	return table("scenario", rows, cells)
}

// costs is the table of what customers cost.
func (r *Record) costs() string {
	var rows []string
	cells := map[string]map[int]string{}
	for _, x := range r.Results {
		if x.Cost == nil {
			continue
		}
		c := x.Cost
		for _, line := range [][2]string{
			{"tasks to which a customer comes", fmt.Sprint(c.Spread)},
			{"round trips per second", number(c.Syncs)},
			{"report of a task, bytes", number(c.ReportBytes)},
			{"levels to a task in a round trip, bytes", number(c.LevelsBytes)},
			{"to and from the board, MB/s", fmt.Sprintf("%.3g", (c.Syncs*(c.ReportBytes+c.LevelsBytes)+c.CollectBytes)/1e6)},
			{"admitted at 5 times the limit, in limits", fmt.Sprintf("%.2f", c.Heavy)},
			{"admitted below the limit", fmt.Sprintf("%.2f %%", 100*c.Light)},
			{"leader, ms of a processor per round trip", fmt.Sprintf("%.3g", c.LeaderMS)},
			{"other tasks, µs of a processor per round trip", number(c.MemberUS)},
		} {
			row := line[0]
			if x.Scenario != costName {
				row = x.Scenario + ": " + row
			}
			if cells[row] == nil {
				cells[row] = map[int]string{}
				rows = append(rows, row)
			}
			cells[row][x.Tasks] = line[1]
		}
	}
	return table("", rows, cells)
}

// table has a column for each size that has cells.
func table(title string, rows []string, cells map[string]map[int]string) string {
	used := slices.DeleteFunc(slices.Clone(sizes), func(n int) bool {
		return !slices.ContainsFunc(rows, func(row string) bool { return cells[row][n] != "" })
	})
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", title)
	for _, n := range used {
		fmt.Fprintf(&b, " %s tasks |", number(float64(n)))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(used)) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, n := range used {
			cell := cells[row][n]
			if cell == "" {
				cell = "–"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// number has separators of thousands.
func number(x float64) string {
	digits := fmt.Sprintf("%.0f", x)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
