package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"strings"
	"testing"
)

// The pictures of the page of operators are in the documents, for both themes.
func TestPagesAreShown(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range []string{"light", "dark"} {
		name := "pictures/page-" + theme + ".png"
		if !strings.Contains(string(text), "("+name+")") {
			t.Errorf("docs/operations.md does not show %s", name)
		}
		file, err := os.Open("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		size, err := png.DecodeConfig(file)
		if err != nil || size.Width != 1440 {
			t.Errorf("%s is %d wide, want 1440: %v", name, size.Width, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Every picture that can be drawn is in the documents.
func TestPicturesAreShown(t *testing.T) {
	text, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"metastability", "criticality", "retries"} {
		if !strings.Contains(string(text), "(pictures/"+name+".svg)") {
			t.Errorf("docs/concepts.md does not show %s", name)
		}
		file, err := os.ReadFile("../../docs/pictures/" + name + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, string(file))
	}
}

func TestDraw(t *testing.T) {
	var s scenario
	if err := json.Unmarshal([]byte(`{"name": "x", "cases": [
		{"name": "a", "results": [{"clients": [{"windows": [{"classes": [{"name": "CRITICAL", "success": 0}]}],
			"series": {"offered": [500, 600], "good": [500, 0], "attempts": [500, 1800]}}]}]},
		{"name": "b", "results": [{"clients": [{"windows": [{"classes": [{"name": "CRITICAL", "success": 1}]}],
			"series": {"offered": [500, 600], "good": [500, 600], "attempts": [500, 660]}}]}]}]}`), &s); err != nil {
		t.Fatal(err)
	}
	for picture, want := range map[string]string{
		criticality(s): ">100</text>",
		retries(s):     ">2000</text>", // the axis ends above 1800
	} {
		wellFormed(t, picture)
		if !strings.Contains(picture, want) {
			t.Errorf("%s lacks %s", picture, want)
		}
	}
}

func wellFormed(t *testing.T, picture string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
