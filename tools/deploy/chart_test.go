//go:build thorough

package deploy

import (
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed90641741/spillway/internal/snippets"
)

// rendered is what helm template prints for the chart.
func rendered(t *testing.T, values map[string]any) string {
	t.Helper()
	c, err := loader.Load(path.Join(deployed, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "test", Namespace: "default"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); text != "" {
			documents = append(documents, text)
		}
	}
	return strings.Join(documents, "\n---\n")
}

// decoded returns objects by their kind.
func decoded(t *testing.T, text string) map[string]runtime.Object {
	t.Helper()
	all, err := objects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]runtime.Object)
	for _, o := range all {
		kinds[o.GetObjectKind().GroupVersionKind().Kind] = o
	}
	return kinds
}

// TestChart: with its values the chart is what kustomize makes of the base, and with scaling what the other manifests are.
func TestChart(t *testing.T) {
	base, err := built(deployed)
	if err != nil {
		t.Fatal(err)
	}
	manifests := decoded(t, string(base))
	for _, name := range []string{"keda.yaml", "hpa.yaml", "podmonitor.yaml"} {
		maps.Copy(manifests, decoded(t, string(read(t, name))))
	}
	for by, kinds := range map[string][]string{
		"none": {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"},
		"keda": {"ConfigMap", "PodDisruptionBudget", "PodMonitor", "ScaledObject", "Service"},
		"hpa":  {"ConfigMap", "HorizontalPodAutoscaler", "PodDisruptionBudget", "PodMonitor", "Service"},
	} {
		text := rendered(t, map[string]any{"scaling": map[string]any{"by": by}, "podMonitor": by != "none"})
		got := decoded(t, text)
		if by != "none" { // the number of tasks is that of the autoscaler
			if strings.Contains(text, "replicas:") {
				t.Errorf("%s: the deployment sets the number of pods, too", by)
			}
			delete(got, "Deployment")
		}
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, kinds) {
			t.Errorf("%s: %v, want %v", by, names, kinds)
		}
		for kind, o := range got {
			if !reflect.DeepEqual(o, manifests[kind]) {
				t.Errorf("%s: the %s of the chart is\n%+v, want\n%+v", by, kind, o, manifests[kind])
			}
		}
	}
}

// TestChartValues: all objects have the name of the service, and the values are where they belong.
func TestChartValues(t *testing.T) {
	text := rendered(t, map[string]any{
		"name": "cart", "image": "cart:v7", "spillway": map[string]any{"image": "spillway:v0.1.0"},
		"scaling": map[string]any{"by": "keda", "offeredPerPod": "55"}, "podMonitor": true,
	})
	if strings.Contains(text, "shop") {
		t.Errorf("another service has the name of the first:\n%s", text)
	}
	for want, n := range map[string]int{"image: cart:v7": 1, "image: spillway:v0.1.0": 2, `threshold: "55"`: 1, `job="cart"`: 2} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%q is there %d times, want %d", want, got, n)
		}
	}
}

// TestCommands: the values that documents set are in the chart, and the directories exist.
func TestCommands(t *testing.T) {
	all, err := snippets.All(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range all {
		for _, command := range s.Commands() {
			words := strings.Fields(command)
			if words[0] != "helm" && !strings.HasPrefix(command, "kubectl apply -k ") {
				continue
			}
			n++
			if _, err := os.Stat(path.Join("../..", words[3])); err != nil {
				t.Errorf("%s: %v", s, err)
			}
			values := make(map[string]any)
			for i, word := range words {
				if word == "--set" {
					if err := strvals.ParseInto(words[i+1], values); err != nil {
						t.Errorf("%s: %v", s, err)
					}
				}
			}
			if words[0] == "helm" && rendered(t, values) == rendered(t, nil) {
				t.Errorf("%s: the values change nothing: %s", s, command)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d commands", n)
	}
}
