// Pictures draws the pictures of docs/concepts.md from scenarios of the simulator:
//
//	go run ./tools/pictures
//
// With the name of a browser it takes the picture of the page of package spilladmin, of a server that is overloaded for a
// minute:
//
//	go run ./tools/pictures chromium
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// directory has the pictures.
const directory = "docs/pictures"

// A scenario is what the program uses of a result of the simulator.
type scenario struct {
	Name  string `json:"name"`
	Cases []struct {
		Name    string `json:"name"`
		Results []struct {
			Clients []clients `json:"clients"`
		} `json:"results"`
	} `json:"cases"`
}

// clients are the results of one group of clients.
type clients struct {
	Windows []struct {
		Classes []struct {
			Name    string  `json:"name"`
			Success float64 `json:"success"`
		} `json:"classes"`
	} `json:"windows"`
	Series struct {
		Offered  []float64 `json:"offered"`
		Good     []float64 `json:"good"`
		Attempts []float64 `json:"attempts"`
	} `json:"series"`
}

func main() {
	do := run
	if len(os.Args) > 1 {
		do = func() error { return page(os.Args[1]) }
	}
	if err := do(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	all, err := simulate("metastable-failure", "criticality", "retry-growth")
	if err != nil {
		return err
	}
	for name, picture := range map[string]string{
		"metastability": metastability(all["metastable-failure"]),
		"criticality":   criticality(all["criticality"]),
		"retries":       retries(all["retry-growth"]),
	} {
		if err := os.WriteFile(filepath.Join(directory, name+".svg"), []byte(picture), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// simulate runs scenarios and returns their results by name.
func simulate(names ...string) (map[string]scenario, error) {
	c := exec.Command("go", append([]string{"run", "./cmd/spillway", "sim", "run", "--quick", "--output", "json"}, names...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("run the simulator: %w", err)
	}
	var results []scenario
	if err := json.Unmarshal(out, &results); err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	all := map[string]scenario{}
	for _, r := range results {
		all[r.Name] = r
	}
	return all, nil
}

// of returns the clients of each case.
func (s scenario) of() (all []clients) {
	for _, c := range s.Cases {
		all = append(all, c.Results[0].Clients[0])
	}
	return all
}

func metastability(s scenario) string {
	const seconds = 30
	c := s.of()
	return lines("Requests answered in time, per second", "The backend stands still from 10 s to 11.5 s.", []line{
		{"offered", gray, c[0].Series.Offered[:seconds]},
		{"four attempts", orange, c[0].Series.Good[:seconds]},
		{"Spillway", blue, c[1].Series.Good[:seconds]},
	})
}

func retries(s scenario) string {
	c := s.of()
	return lines("Attempts per second", "The backend rejects 19 of 20 requests.", []line{
		{"calls", gray, c[0].Series.Offered},
		{"three attempts", orange, c[0].Series.Attempts},
		{"budget of 10 %", blue, c[1].Series.Attempts},
	})
}

func criticality(s scenario) string {
	c := s.of()
	var groups []group
	for i, class := range c[1].Windows[0].Classes {
		groups = append(groups, group{class.Name, []float64{c[0].Windows[0].Classes[i].Success, class.Success}})
	}
	return bars("Share of requests answered in time", "Ten times the capacity is offered; 80 % of the capacity is critical.", groups)
}
