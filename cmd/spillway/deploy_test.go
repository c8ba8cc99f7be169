//go:build unix

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/telemetry"
)

func deployed(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A metric is one of the library or the proxy.
type metric struct {
	name, help string
	scope      telemetry.Scope
	labels     []string
}

// metricsOf returns the metrics of the library and the proxy.
func metricsOf() (all []metric) {
	for _, m := range telemetry.Metrics {
		all = append(all, metric{m.Name, m.Help, m.Scope, slices.Concat(m.Labels, m.OfProxy())})
	}
	return all
}

// The parts of an expression: what names metrics, what matches labels, what groups by
// them, and what is neither.
var (
	matchers = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-zA-Z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(by|on|without|ignoring)\s*\(([^)]*)\)`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
)

// ofPrometheus are labels and words that are not of the program.
var (
	ofTarget = []string{"job", "instance", "le"}
	words    = []string{"sum", "max", "min", "rate", "by", "or", "vector", "histogram_quantile", "label_values", "le", "job", "and", "unless", "increase", "present_over_time", "max_over_time", "up"}
)

// wrongWith returns what an expression names and is not there.
func wrongWith(t *testing.T, expression string) (wrong []string) {
	t.Helper()
	known, values := make(map[string]metric), telemetry.LabelValues()
	for _, m := range metricsOf() {
		for _, suffix := range []string{"", "_sum", "_count", "_bucket"} {
			known[m.name+suffix] = m
		}
	}
	expression = ranges.ReplaceAllString(expression, "")
	var metrics []metric
	for _, part := range matchers.FindAllStringSubmatch(grouping.ReplaceAllString(expression, ""), -1) {
		m, ok := known[part[1]]
		if !ok {
			if !slices.Contains(words, part[1]) {
				wrong = append(wrong, part[1]+" is no metric")
			}
			continue
		}
		metrics = append(metrics, m)
		for _, l := range matcher.FindAllStringSubmatch(part[2], -1) {
			if slices.Contains(ofTarget, l[1]) {
				continue
			}
			if !slices.Contains(m.labels, l[1]) {
				wrong = append(wrong, m.name+" has no label "+l[1])
			}
			for v := range strings.SplitSeq(l[3], "|") {
				if all, ok := values[l[1]]; ok && !slices.Contains(all, v) {
					wrong = append(wrong, l[1]+" is never "+v)
				}
			}
		}
	}
	if len(metrics) == 0 {
		wrong = append(wrong, "it has no metric of the program")
	}
	for _, g := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(g[2], ",") {
			label = strings.TrimSpace(label)
			has := func(m metric) bool { return slices.Contains(m.labels, label) }
			if !slices.Contains(ofTarget, label) && !slices.ContainsFunc(metrics, has) {
				wrong = append(wrong, "nothing has the label "+label)
			}
		}
	}
	return wrong
}

func checkExpression(t *testing.T, where, expression string) {
	t.Helper()
	for _, w := range wrongWith(t, expression) {
		t.Errorf("%s: %s: %s", where, w, expression)
	}
}

// alertsByFigure are the alerts of notices whose condition has a metric of its own.
var alertsByFigure = map[string]string{
	telemetry.NoticeResets:        "alert: SpillwayConnectionsReset\n",
	telemetry.NoticeQuotaAway:     "alert: SpillwayQuotaNotShared\n",
	telemetry.NoticeQuotaConflict: "alert: SpillwayQuotaLimitsDiffer\n",
}

var typedLine = regexp.MustCompile(`(?m)^- \*\*Type:\*\* One process: .+\. All: .+\.$`)

// checkTyped fails the test unless the section of an alert says what to type for one process and for all, in commands of this
// program with flags that exist.
func checkTyped(t *testing.T, alert, guide, heading string) {
	t.Helper()
	_, section, _ := strings.Cut(guide[max(0, strings.Index(strings.ToLower(guide), heading)):], heading[len(heading)-1:])
	section, _, _ = strings.Cut(section[1:], "\n### ")
	line := typedLine.FindString(section)
	if line == "" {
		t.Errorf("%s: its section does not say what to type: one process, and all", alert)
	}
	for _, m := range regexp.MustCompile("`spillway ([^`]+)`").FindAllStringSubmatch(line, -1) {
		parser, err := kong.New(new(cli), kong.Name("spillway"), kong.Vars{"version": "v0"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(strings.Fields(strings.ReplaceAll(m[1], "ADDRESS...", "127.0.0.1:8001"))); err != nil {
			t.Errorf("%s: spillway %s: %v", alert, m[1], err)
		}
	}
}

func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(deployed(t, "alerts.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := file.Groups[0].Rules
	tested := string(deployed(t, "alerts_test.yaml"))
	for _, kind := range telemetry.Notices {
		has := cmp.Or(alertsByFigure[kind], `spillway_notice{kind="`+kind+`"}`)
		if !strings.Contains(string(deployed(t, "alerts.yaml")), has) {
			t.Errorf("the notice %s has no alert", kind)
		}
	}
	for _, r := range rules {
		checkExpression(t, r.Alert, r.Expr)
		anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], runbook.URL+"#")
		heading := "\n### " + strings.ReplaceAll(anchor, "-", " ") + "\n"
		if !ok || !strings.Contains(strings.ToLower(string(guide)), heading) {
			t.Errorf("%s: the runbook has no section %q", r.Alert, anchor)
		}
		checkTyped(t, r.Alert, string(guide), heading)
		if ofProxy(strings.ReplaceAll(r.Expr, withoutProxies, "")) != (r.Labels["component"] == "proxy") {
			t.Errorf("%s: the label component does not say whether the proxy alone has its metrics", r.Alert)
		}
		if of(telemetry.Quota, r.Expr) != (r.Labels["component"] == "quota") {
			t.Errorf("%s: the label component does not say whether spillway quota alone has its metrics", r.Alert)
		}
		if !strings.Contains(tested, "- alertname: "+r.Alert+"\n") {
			t.Errorf("%s never fires in alerts_test.yaml", r.Alert)
		}
		if r.Annotations["summary"] == "" || !strings.HasSuffix(r.Annotations["description"], ".") || r.Labels["severity"] == "" || r.For == "" {
			t.Errorf("%s lacks something: %+v", r.Alert, r)
		}
		if strings.Contains(r.Expr, "rate(") != strings.Contains(r.Annotations["summary"], "$value | human") && r.Alert != "SpillwayThrottles" && r.Alert != "SpillwayEndpointsDown" {
			t.Errorf("%s: the summary has no value with a unit: %s", r.Alert, r.Annotations["summary"])
		}
	}
}

// TestScaling: the signals for autoscalers are made of metrics that exist, and the autoscalers use them.
func TestScaling(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	if err := yaml.Unmarshal(deployed(t, "scaling.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	rules := file.Groups[0].Rules
	for _, r := range rules {
		checkExpression(t, r.Record, strings.ReplaceAll(r.Expr, "clamp_max", "max"))
		for _, user := range []string{"keda.yaml", "hpa.yaml", "scaling_test.yaml"} {
			if !strings.Contains(string(deployed(t, user)), r.Record) {
				t.Errorf("%s does not use %s", user, r.Record)
			}
		}
	}
	if len(rules) != 2 {
		t.Errorf("%d rules", len(rules))
	}
}

// TestAlertsOfDocuments: an alert that a document names exists.
func TestAlertsOfDocuments(t *testing.T) {
	rules, names := string(deployed(t, "alerts.yaml")), regexp.MustCompile("`(Spillway[A-Z][A-Za-z]+)`")
	n := 0
	for _, document := range []string{"runbook.md", "operations.md", "metrics.md", "quota-fleet.md", "incidents.md"} {
		text, err := os.ReadFile("../../docs/" + document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range names.FindAllStringSubmatch(string(text), -1) {
			if n++; !strings.Contains(rules, "alert: "+m[1]+"\n") {
				t.Errorf("%s: there is no alert %s", document, m[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d names", n)
	}
}

// withoutProxies selects, in an expression, the instances that are services with the library.
const withoutProxies = "unless on (job, instance) present_over_time(spillway_ready[15m])"

// ofProxy reports whether an expression has a metric that only the proxy has.
func ofProxy(expression string) bool { return of(telemetry.Proxy, expression) }

// of reports whether an expression has a metric of a scope.
func of(scope telemetry.Scope, expression string) bool {
	return slices.ContainsFunc(metricsOf(), func(m metric) bool {
		return m.scope == scope && regexp.MustCompile(`\b`+m.name+`(_sum|_count|_bucket)?\b`).MatchString(expression)
	})
}

// TestDashboard checks all expressions, and that each metric is on the dashboard.
func TestDashboard(t *testing.T) {
	text := deployed(t, "grafana.json")
	var board struct {
		Title  string
		Panels []struct {
			Title       string
			Description string
			Targets     []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Type, Query string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, x := range p.Targets {
			checkExpression(t, p.Title, x.Expr)
			if of(telemetry.Quota, x.Expr) && !strings.HasPrefix(p.Description, "Spillway quota only") {
				t.Errorf("%s does not say that spillway quota alone has %s", p.Title, x.Expr)
			}
			if ofProxy(x.Expr) && !strings.Contains(strings.ToLower(p.Description), "proxy only") {
				t.Errorf("%s does not say that the proxy alone has %s", p.Title, x.Expr)
			}
		}
	}
	for _, v := range board.Templating.List {
		if v.Type == "query" {
			checkExpression(t, "a variable", v.Query)
		}
	}
	for _, m := range metricsOf() {
		if !strings.Contains(string(text), m.name) {
			t.Errorf("%s is on no panel", m.name)
		}
	}
}

// TestCheckOfExpressions: the check finds what is wrong.
func TestCheckOfExpressions(t *testing.T) {
	for _, bad := range []string{
		`sum(rate(spillway_decision_total[5m]))`, `spillway_limit{policy="shed"}`, `spillway_decisions_total{policy="shedder"}`,
		`sum by (listener) (spillway_decisions_total)`, `1 > 0`, `spillway_endpoints{state!="gone"}`,
	} {
		if len(wrongWith(t, bad)) == 0 {
			t.Errorf("found nothing wrong with %s", bad)
		}
	}
}

func TestKubernetes(t *testing.T) {
	d := yaml.NewDecoder(strings.NewReader(string(deployed(t, "kubernetes.yaml"))))
	kinds := make(map[string]map[string]any)
	for {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds[doc["kind"].(string)] = doc
	}
	at := func(v any, path ...any) any {
		for _, p := range path {
			switch p := p.(type) {
			case string:
				v = v.(map[string]any)[p]
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	file := at(kinds["ConfigMap"], "data", "spillway.yaml").(string)
	c, err := config.Parse("spillway.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	spec := at(kinds["Deployment"], "spec", "template", "spec")
	sidecar := at(spec, "initContainers", 1).(map[string]any)
	if sidecar["restartPolicy"] != "Always" || sidecar["lifecycle"] != nil {
		t.Errorf("no native sidecar: %v", sidecar)
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		if at(sidecar[probe], "httpGet", "port") != "admin" {
			t.Errorf("%s does not ask the address for operators", probe)
		}
	}
	grace := at(spec, "terminationGracePeriodSeconds").(int)
	if !strings.HasSuffix(c.Admin.Address, ":8001") || c.DrainTimeout.Seconds() >= float64(grace) {
		t.Errorf("%s, %v, %v", c.Admin.Address, c.DrainTimeout, grace)
	}
	if names := slices.Sorted(maps.Keys(kinds)); !slices.Equal(names, []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"}) {
		t.Errorf("%v", names)
	}
}

func TestFile(t *testing.T) {
	if _, err := config.Parse("spillway.yaml", deployed(t, "spillway.yaml")); err != nil {
		t.Error(err)
	}
}

// TestImage: the image is built as the program is.
func TestImage(t *testing.T) {
	text := string(deployed(t, "Dockerfile"))
	for _, want := range []string{"cd /src && CGO_ENABLED=0 go build", `ENTRYPOINT ["/spillway"]`, "FROM scratch"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %s", want)
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(mod), "\ngo ")
	if minor := strings.Join(strings.Split(version, ".")[:2], "."); !strings.Contains(text, "ARG GO=golang:"+minor+"-") {
		t.Errorf("it is built with another Go than %s", minor)
	}
}
