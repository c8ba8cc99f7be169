package main

import (
	"encoding/json"
	"os"
)

// jsonRow is a row of the table in a file.
type jsonRow struct {
	Scenario   string      `json:"scenario"`
	About      string      `json:"about"`
	Overload   bool        `json:"overload"` // rejections are needed
	Oracle     oracle      `json:"oracle"`
	Algorithms []jsonScore `json:"algorithms"`
}

// jsonScore is the result of one algorithm.
type jsonScore struct {
	Name            string  `json:"name"`
	Percent         float64 `json:"percent_of_oracle"`
	FalseRejections float64 `json:"false_rejections_percent"`
	P99             float64 `json:"p99_ms"`
	Worst           float64 `json:"worst_five_seconds_percent"`
	Late            int     `json:"late"`
	Left            int     `json:"left"`
	Tally
	Keys    []Tally `json:"keys"`
	Classes []Tally `json:"classes"` // from SHEDDABLE to CRITICAL_PLUS
}

// writeJSON writes all rows to a file.
func writeJSON(path string, rows []*row, vs []variant) error {
	list := make([]jsonRow, len(rows))
	for i, r := range rows {
		list[i] = jsonRow{Scenario: r.Name, About: r.About, Overload: r.Overload, Oracle: r.oracle}
		for j, v := range vs {
			s := r.scores[j]
			list[i].Algorithms = append(list[i].Algorithms, jsonScore{
				Name: v.name, Percent: s.Percent, FalseRejections: s.False, P99: s.P99, Worst: s.Worst,
				Late: s.Late, Left: s.Left, Tally: s.Tally, Keys: s.Keys, Classes: s.Classes[:],
			})
		}
	}
	return writeRows(path, list)
}

func writeRows(path string, list []jsonRow) error {
	b, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return err
	}
	return writeFile(path, append(b, '\n'))
}

// writeFile creates a file with the permissions that the user's umask leaves.
func writeFile(path string, b []byte) error {
	f, err := os.Create(path) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
