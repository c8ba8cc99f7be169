//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A board is the description of the Grafana dashboard in deploy/board.yaml.
type board struct {
	Title string
	Rows  []struct {
		Height int
		Panels []*panel
	}
}

// A panel is one chart, number or table.
type panel struct {
	Title, Type, Description, Unit string
	Min                            *float64
	Max                            *float64
	Stacked, Log                   bool
	Threshold                      *struct {
		Color string
		Value float64
	}
	Targets []struct{ Expr, Legend string }
}

// node is a JSON object. Its keys are sorted when it is written.
type node = map[string]any

var dataSource = node{"type": "prometheus", "uid": "${datasource}"}

// grafana returns the dashboard in the form of Grafana.
func (b *board) grafana() node {
	var panels []node
	y := 0
	for _, row := range b.Rows {
		width := 24 / len(row.Panels)
		for i, p := range row.Panels {
			x := p.grafana()
			x["id"], x["gridPos"] = len(panels)+1, node{"x": i * width, "y": y, "w": width, "h": row.Height}
			panels = append(panels, x)
		}
		y += row.Height
	}
	return node{
		"title": b.Title, "uid": "spillway", "tags": []string{"spillway", "overload"}, "timezone": "browser", "schemaVersion": 39, "version": 3,
		"refresh": "10s", "editable": true, "time": node{"from": "now-30m", "to": "now"}, "annotations": node{"list": []any{}}, "panels": panels,
		"templating": node{"list": []node{
			{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
			{
				"name": "job", "type": "query", "label": "Job", "datasource": dataSource, "query": "label_values(spillway_decisions_total, job)",
				"includeAll": true, "multi": true, "refresh": 2, "allValue": ".*", "current": node{"text": "All", "value": "$__all"},
			},
		}},
	}
}

// grafana returns the panel without its place.
func (p *panel) grafana() node {
	defaults := node{"unit": "short", "min": 0}
	if p.Unit != "" {
		defaults["unit"] = p.Unit
	}
	if p.Min != nil {
		defaults["min"] = *p.Min
	}
	if p.Max != nil {
		defaults["max"] = *p.Max
	}
	if t := p.Threshold; t != nil {
		steps := []node{{"color": "green", "value": nil}, {"color": t.Color, "value": t.Value}}
		defaults["thresholds"] = node{"mode": "absolute", "steps": steps}
	}
	kind, more := "timeseries", node{}
	switch p.Type {
	case "":
		defaults["custom"] = p.lines()
		if p.Log {
			delete(defaults, "min") // an axis that has no 0
		}
		more["options"] = node{"legend": node{"displayMode": "list", "placement": "bottom"}, "tooltip": node{"mode": "multi"}}
	case "stat":
		kind, more["options"] = p.Type, node{"reduceOptions": node{"calcs": []string{"lastNotNull"}}}
	default:
		kind, more["transformations"] = p.Type, []node{{"id": "organize", "options": node{"excludeByName": node{"Time": true}}}}
	}
	more["title"], more["description"], more["type"], more["datasource"] = p.Title, p.Description, kind, dataSource
	more["fieldConfig"] = node{"defaults": defaults, "overrides": []any{}}
	more["targets"] = p.targets()
	return more
}

// lines says how the lines of a time series are drawn.
func (p *panel) lines() node {
	switch {
	case p.Stacked:
		return node{"lineWidth": 1, "fillOpacity": 60, "stacking": node{"mode": "normal"}}
	case p.Log:
		return node{"lineWidth": 1, "scaleDistribution": node{"type": "log", "log": 10}}
	default:
		return node{"lineWidth": 1, "fillOpacity": 10, "stacking": node{"mode": "none"}}
	}
}

func (p *panel) targets() (all []node) {
	for i, t := range p.Targets {
		x := node{"refId": string(rune('A' + i)), "expr": t.Expr, "legendFormat": t.Legend}
		if p.Type == "table" {
			x["format"], x["instant"] = "table", true
		}
		all = append(all, x)
	}
	return all
}

func readBoard(t *testing.T) *board {
	t.Helper()
	b := new(board)
	d := yaml.NewDecoder(bytes.NewReader(deployed(t, "board.yaml")))
	d.KnownFields(true)
	if err := d.Decode(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBoard: deploy/grafana.json is what deploy/board.yaml describes.
func TestBoard(t *testing.T) {
	want, err := json.MarshalIndent(readBoard(t).grafana(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(filepath.Join("..", "..", "deploy", "grafana.json"), want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(deployed(t, "grafana.json"), want) {
		t.Error("deploy/grafana.json differs from deploy/board.yaml: run go test -run TestBoard . -update in cmd/spillway")
	}
}
