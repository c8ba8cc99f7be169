package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const deployed = "../../deploy"

// objects decodes manifests as the API server does in strict mode: a field that a kind
// does not have, or has twice, is an error.
func objects(text []byte) (all []runtime.Object, err error) {
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds)); err != nil {
		return nil, err
	}
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

func TestKubernetes(t *testing.T) {
	text := read(t, "kubernetes.yaml")
	all, err := objects(text)
	if err != nil || len(all) != 3 {
		t.Errorf("%d objects: %v", len(all), err)
	}
	for _, wrong := range [][2]string{{"restartPolicy: Always", "restartpolicy: Always"}, {"replicas: 2", "replicas: two"}, {"kind: Service\n", "kind: Servise\n"}} {
		bad := bytes.Replace(text, []byte(wrong[0]), []byte(wrong[1]), 1)
		if _, err := objects(bad); err == nil || bytes.Equal(bad, text) {
			t.Errorf("%q was accepted", wrong[1])
		}
	}
}

// TestKustomize builds the base as kubectl kustomize does, and an overlay of it.
func TestKustomize(t *testing.T) {
	build := func(dir string) []byte {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		if all, err := objects(text); err != nil || len(all) != 3 {
			t.Errorf("%s: %d objects: %v", dir, len(all), err)
		}
		return text
	}
	build(deployed)
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
	built := string(build(overlay))
	for _, want := range []string{"image: registry.example.org/spillway:v0.1.0", "name: eu-spillway", "name: eu-shop"} {
		if !strings.Contains(built, want) {
			t.Errorf("the overlay has no %q", want)
		}
	}
}

// TestDockerfile parses and lints as docker build --check does.
func TestDockerfile(t *testing.T) {
	lint := func(text []byte) (problems []string) {
		parsed, err := parser.Parse(bytes.NewReader(text))
		if err != nil {
			return []string{err.Error()}
		}
		l := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
			problems = append(problems, rule+": "+message)
		}})
		stages, _, err := instructions.Parse(parsed.AST, l)
		if err != nil {
			problems = append(problems, err.Error())
		} else if last := stages[len(stages)-1]; last.BaseName != "scratch" {
			problems = append(problems, "the last stage is of "+last.BaseName)
		}
		return problems
	}
	text := read(t, "Dockerfile")
	if problems := lint(text); len(problems) > 0 {
		t.Error(problems)
	}
	if len(lint(bytes.Replace(text, []byte("USER "), []byte("USR "), 1))) == 0 {
		t.Error("an instruction that there is not was accepted")
	}
}
