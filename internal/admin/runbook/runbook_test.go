package runbook

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/shed"
)

const root = "../../../"

// anchors returns the anchors of the headings of the runbook, as its host makes them.
func anchors(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(root + "docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	left := regexp.MustCompile(`[^a-z0-9_ -]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.ReplaceAll(left.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return all
}

// parts are what each section of the runbook about a reason or an alert has, in this order.
var parts = []string{"Means", "Hurt", "Look at", "Do", "Afterwards"}

// TestSectionsHaveOneShape: a tired reader finds the same parts in the same order.
func TestSectionsHaveOneShape(t *testing.T) {
	text, err := os.ReadFile(root + "docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, of, _ := strings.Cut(string(text), "\n## Reasons of rejections\n")
	of, _, _ = strings.Cut(of, "\n## What clients see\n")
	sections := strings.Split(of, "\n### ")[1:]
	if len(sections) < 45 {
		t.Fatalf("%d sections", len(sections))
	}
	for _, section := range sections {
		name, body, _ := strings.Cut(section, "\n")
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^- \*\*([A-Z][a-z ]+):\*\* \S.*\.$`).FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		got = slices.DeleteFunc(got, func(part string) bool { return part == "Type" }) // of alerts
		if !slices.Equal(got, parts) {
			t.Errorf("%s has %q, want %q", name, got, parts)
		}
	}
}

// TestSectionsNameTheSettings: what the dashboard and the log say to look at, the section names, too.
func TestSectionsNameTheSettings(t *testing.T) {
	text, err := os.ReadFile(root + "docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		sections[strings.ReplaceAll(strings.ToLower(name), " ", "-")] = body
	}
	for reason, e := range entries {
		for _, field := range e.Settings {
			if !strings.HasPrefix(field, "mongo[]") && !strings.Contains(sections[e.Section], "`"+field) {
				t.Errorf("%s: the section %s does not name %s", reason, e.Section, field)
			}
		}
	}
}

// TestGatesHaveTheirReasons: the table of gates has each policy, and each of its reasons with the section that it is about.
func TestGatesHaveTheirReasons(t *testing.T) {
	text, err := os.ReadFile(root + "docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range telemetry.Policies {
		row := regexp.MustCompile("(?m)^\\| `" + policy + "` \\| .*$").FindString(string(text))
		for _, reason := range telemetry.ReasonsOf(policy) {
			if link := "[" + reason.String() + "](#" + Of(policy, reason.String(), "").Section + ")"; !strings.Contains(row, link) {
				t.Errorf("the row of %s has no %s: %q", policy, link, row)
			}
		}
	}
}

// reasons returns all reasons for which requests are rejected or lost, each with its policy.
func reasons() map[string]string {
	all := make(map[string]string)
	for r := accounts.Reason(0); int(r) < accounts.Reasons; r++ {
		all[r.String()] = "proxy"
	}
	for a := range accounts.Count {
		if name := accounts.Account(a).String(); strings.HasPrefix(name, "client_gone") {
			all[name] = "proxy"
		}
	}
	for k := range telemetry.Kind(telemetry.Kinds) {
		if k.Reason() != "" {
			all[k.Reason()] = k.Policy()
		}
	}
	return all
}

// exists reports whether the schema of the configuration has a field.
func exists(t *testing.T, field string) bool {
	t.Helper()
	text, err := os.ReadFile(root + "cmd/spillway/internal/gateway/config/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	within := func(x map[string]any, key string) map[string]any {
		x, _ = x[key].(map[string]any)
		if ref, ok := x["$ref"].(string); ok {
			definitions, _ := schema["$defs"].(map[string]any)
			x, _ = definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		return x
	}
	x := map[string]any{"root": schema}
	x = within(x, "root")
	for name := range strings.SplitSeq(field, ".") {
		bare, several := strings.CutSuffix(name, "[]")
		if x = within(within(x, "properties"), bare); several {
			x = within(x, "items")
		}
	}
	return x != nil
}

func TestExists(t *testing.T) {
	for field, want := range map[string]bool{"clusters[].quota": true, "drain_timeout": true, "mongo[].retry.budget": true, "mongo[].retry.ratio": false, "clusters.quota": false, "": false} {
		if got := exists(t, field); got != want {
			t.Errorf("%q: %v", field, got)
		}
	}
}

// TestEachReasonHasAnEntry: and each entry a section, and a setting that exists.
func TestEachReasonHasAnEntry(t *testing.T) {
	sections := anchors(t)
	all := reasons()
	if len(all) < 20 || all[spillway.ReasonFairShare.String()] == "" || all["max_requests"] == "" {
		t.Fatalf("only %v", all)
	}
	for reason, policy := range all {
		e := Of(policy, reason, "")
		if reason != "other" && e.Section == "other" && reason != "other_policy" {
			t.Errorf("%s of %s has no entry", reason, policy)
		}
	}
	for reason, e := range entries {
		_, anchor, _ := strings.Cut(e.Link(), "#")
		switch {
		case !slices.Contains(sections, anchor):
			t.Errorf("%s: the runbook has no section %q", reason, anchor)
		case e.Do == "" || !strings.HasSuffix(e.Do, "."):
			t.Errorf("%s: what to do is %q", reason, e.Do)
		}
		for _, field := range e.Settings {
			if !exists(t, field) {
				t.Errorf("%s: the configuration has no field %s", reason, field)
			}
		}
		if words := strings.Fields(reason); all[words[0]] == "" && all[words[len(words)-1]] == "" {
			t.Errorf("%s is the reason of nothing", reason)
		}
	}
}

// TestSettings: a limit that customers share has an entry of its own, which names it and exists.
func TestSettings(t *testing.T) {
	sections := anchors(t)
	for setting, field := range map[string]string{
		quota.UnlistedTotal: "clusters[].quota.unlisted_total", quota.Capacity: "clusters[].quota.capacity", NoCustomer: "routes[].customer",
	} {
		e := Of("quota", "quota", setting)
		if e.Settings[0] != field || !slices.Contains(sections, e.Section) || !strings.HasSuffix(e.Do, ".") {
			t.Errorf("%s: %+v, and must name %s first", setting, e, field)
		}
		for _, field := range e.Settings {
			if !exists(t, field) {
				t.Errorf("%s: the configuration has no field %s", setting, field)
			}
		}
	}
	if e := Of("quota", "quota", ""); e.Settings[0] != "clusters[].quota" {
		t.Errorf("the customer's own limit: %+v", e)
	}
}

// TestWaits: what limits a wait names the settings that change it, and no other; two waits have none.
func TestWaits(t *testing.T) {
	for setting, want := range map[string]string{
		shed.ByDeadline: "routes[].timeout", shed.ByMaxWait: "clusters[].shed.max_wait", shed.ByBurst: "clusters[].shed.max_wait", shed.ByLatency: "", shed.ByQueue: "",
	} {
		e := Of("shed", "max_wait", setting)
		if got := strings.Join(e.Settings, " "); (got == "") != (want == "") || !strings.HasPrefix(got, want) || strings.Contains(got, "timeout") != (setting == shed.ByDeadline) {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
		for _, field := range e.Settings {
			if !exists(t, field) {
				t.Errorf("%s: the configuration has no field %s", setting, field)
			}
		}
		if e.Section != "max_wait" || !strings.HasSuffix(e.Do, ".") {
			t.Errorf("%s: %+v", setting, e)
		}
	}
	if e := Of("batch", "max_wait", ""); e.Section != "batch-max_wait" {
		t.Errorf("a wait for a batch connection: %+v", e)
	}
}

// TestConditionsHaveSections: and what the banner says has something to do.
func TestConditionsHaveSections(t *testing.T) {
	sections := anchors(t)
	for kind, e := range conditions {
		notice := slices.Contains(telemetry.Notices, kind)
		if !slices.Contains(sections, e.Section) || !notice && !strings.HasSuffix(e.Do, ".") {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	if _, ok := Condition(""); ok {
		t.Error("no condition has an entry")
	}
}

// TestURL: the address is that of the repository that the module path names.
func TestURL(t *testing.T) {
	text, err := os.ReadFile(root + "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module, _, _ := strings.Cut(strings.TrimPrefix(string(text), "module "), "\n")
	if want := "https://" + module + "/blob/main/docs/runbook.md"; URL != want {
		t.Errorf("%s, want %s", URL, want)
	}
}
