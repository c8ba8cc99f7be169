//go:build thorough

package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const deployed = "../../deploy"

// A file has a program that reads it.
type file struct {
	tool  string                 // a program that must be installed; empty: none
	check func(dir string) error // reads the file in a directory that has all of them
	wrong [][2]string            // replacements in the file that check must reject
}

// files has each file of the directory, except the ones that cmd/spillway reads and tests.
var files = map[string]file{
	"Dockerfile": {check: dockerfile, wrong: [][2]string{{"USER ", "USR "}, {"FROM scratch", "FROM debian"}}},
	"kubernetes.yaml": {check: kubernetes, wrong: [][2]string{
		{"restartPolicy: Always", "restartpolicy: Always"}, {"replicas: 2", "replicas: two"}, {"kind: Service\n", "kind: Servise\n"},
	}},
	"hpa.yaml":           {check: manifest("hpa.yaml"), wrong: [][2]string{{"maxReplicas", "maxReplicaCount"}, {"autoscaling/v2", "autoscaling/v2beta2"}}},
	"keda.yaml":          {check: manifest("keda.yaml"), wrong: [][2]string{{"maxReplicaCount", "maxReplicas"}, {`threshold: "300"`, "threshold: 300"}}},
	"podmonitor.yaml":    {check: manifest("podmonitor.yaml"), wrong: [][2]string{{"podMetricsEndpoints", "endpoints"}, {"honorLabels", "honor_labels"}}},
	"scaling.yaml":       {tool: "promtool", check: rules("scaling.yaml"), wrong: [][2]string{{"record:", "recorded:"}, {"sum by (job)", "sum of (job)"}}},
	"scaling_test.yaml":  {tool: "promtool", check: rulesTest("scaling_test.yaml"), wrong: [][2]string{{"rule_files:", "files:"}, {"value: 400", "value: 401"}}},
	"kustomization.yaml": {check: kustomization, wrong: [][2]string{{"resources:", "resource:"}, {"- kubernetes.yaml", "- kubernetes.yml"}}},
	"alerts.yaml":        {tool: "promtool", check: rules("alerts.yaml"), wrong: [][2]string{{"for: 5m", "for: five"}, {"sum by (job, cluster)", "sum of (job, cluster)"}}},
	"alerts_test.yaml":   {tool: "promtool", check: rulesTest("alerts_test.yaml"), wrong: [][2]string{{"rule_files:", "files:"}, {"exp_alerts:", "expected:"}}},
	"grafana.json": {tool: "promtool", check: grafana, wrong: [][2]string{
		{"$__rate_interval]))", "$__rate_interval])"}, {`job=~\"$job\"`, `job=~\"$task\"`}, {`"x": 6,`, `"x": 5,`}, {`"id": 2,`, `"id": 1,`}, {`"type": "stat"`, `"type": "stats"`},
	}},
	"spillway.service": {tool: "systemd-analyze", check: unit, wrong: [][2]string{
		{"ProtectClock=yes", "ProtectsClock=yes"}, {"\nType=exec", "\nType=exek"}, {"ExecStart=/", "ExecStart="}, {"UMask=0077", "UMask=private"},
	}},
}

// inProgram is how a test of cmd/spillway reads a file.
const inProgram = `deployed(t, %q)`

// TestFiles checks each file with the program that reads it, and that this program notices mistakes.
func TestFiles(t *testing.T) {
	entries, err := os.ReadDir(deployed)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../../cmd/spillway/deploy_test.go")
	if err != nil {
		t.Fatal(err)
	}
	boards, err := os.ReadFile("../../cmd/spillway/board_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries {
		if e.IsDir() {
			continue // TestChart
		}
		f, ok := files[e.Name()]
		if !ok {
			if read := fmt.Sprintf(inProgram, e.Name()); !strings.Contains(string(tests)+string(boards), read) {
				t.Errorf("no program validates %s: add it to files, or read it in a test of cmd/spillway with %s", e.Name(), read)
			}
			continue
		}
		found++
		t.Run(e.Name(), func(t *testing.T) { f.test(t, e.Name()) })
	}
	if found != len(files) {
		t.Errorf("%d files of %d exist", found, len(files))
	}
}

func (f file) test(t *testing.T, name string) {
	if f.tool != "" {
		if _, err := exec.LookPath(f.tool); err != nil {
			t.Skipf("%s is not installed", f.tool)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(deployed)); err != nil {
		t.Fatal(err)
	}
	if err := f.check(dir); err != nil {
		t.Error(err)
	}
	text := read(t, name)
	for _, wrong := range f.wrong {
		bad := bytes.Replace(text, []byte(wrong[0]), []byte(wrong[1]), 1)
		if bytes.Equal(bad, text) {
			t.Errorf("there is no %q", wrong[0])
		}
		if err := os.WriteFile(filepath.Join(dir, name), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if f.check(dir) == nil {
			t.Errorf("%q was accepted", wrong[1])
		}
	}
}

// objects decodes manifests as the API server does in strict mode: a field that a kind
// does not have, or has twice, is an error.
func objects(text []byte) (all []runtime.Object, err error) {
	kinds := runtime.NewScheme()
	err = errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), policyv1.AddToScheme(kinds), autoscalingv2.AddToScheme(kinds),
		monitoringv1.AddToScheme(kinds))
	if err != nil {
		return nil, err
	}
	addKEDA(kinds)
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, kinds, kinds, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		o, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// kubernetes decodes the manifest as the API server does.
func kubernetes(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "kubernetes.yaml"))
	if err != nil {
		return err
	}
	return fourObjects(text)
}

// manifest returns a check of a file with one object.
func manifest(name string) func(dir string) error {
	return func(dir string) error {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		_, err = objects(text)
		return err
	}
}

func fourObjects(text []byte) error {
	all, err := objects(text)
	if err == nil && len(all) != 4 {
		err = fmt.Errorf("%d objects", len(all))
	}
	return err
}

// built is what kubectl kustomize prints for a directory.
func built(dir string) ([]byte, error) {
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	return all.AsYaml()
}

func kustomization(dir string) error {
	text, err := built(dir)
	if err != nil {
		return err
	}
	return fourObjects(text)
}

// TestOverlay builds an overlay of the base.
func TestOverlay(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "base"), os.DirFS(deployed)); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(root, "overlay")
	if err := os.Mkdir(overlay, 0o700); err != nil {
		t.Fatal(err)
	}
	const text = "resources: [../base]\nnamePrefix: eu-\nimages: [{name: spillway, newName: registry.example.org/spillway, newTag: v0.1.0}]\n"
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := built(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := fourObjects(all); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"image: registry.example.org/spillway:v0.1.0", "name: eu-shop-spillway", "name: eu-shop"} {
		if !strings.Contains(string(all), want) {
			t.Errorf("the overlay has no %q", want)
		}
	}
}

// dockerfile parses and lints as docker build --check does.
func dockerfile(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var problems []error
	l := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		problems = append(problems, errors.New(rule+": "+message))
	}})
	stages, _, err := instructions.Parse(parsed.AST, l)
	if err != nil {
		problems = append(problems, err)
	} else if last := stages[len(stages)-1]; last.BaseName != "scratch" {
		problems = append(problems, errors.New("the last stage is of "+last.BaseName))
	}
	return errors.Join(problems...)
}
