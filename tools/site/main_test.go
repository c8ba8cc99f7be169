package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	dead, pages, err := check(fstest.MapFS{
		"index.html":   {Data: []byte(`<a href="a/#top"> <a href="a/#gone"> <a href="b/"> <a href="https://example.org/x"> <img src="x.png?v=1">`)},
		"a/index.html": {Data: []byte(`<h1 id="top"> <a href=".."> <a href="../x.png"> <a href="../y.png"> <a href="#top">`)},
		"x.png":        {},
	})
	if err != nil || pages != 2 {
		t.Fatal(pages, err)
	}
	slices.Sort(dead)
	if want := []string{"a/index.html: ../y.png", "index.html: a/#gone", "index.html: b/"}; !slices.Equal(dead, want) {
		t.Errorf("dead links %q, want %q", dead, want)
	}
}
