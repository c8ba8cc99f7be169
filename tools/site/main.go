// Site checks the pages of a generated site: each link to a page, a file or a heading of the
// site must lead to one that exists.
//
//	go run ./tools/site dist/site
package main

import (
	"fmt"
	"io/fs"
	"log"
	"os"
	"path"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: site DIRECTORY")
	}
	dead, pages, err := check(os.DirFS(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	for _, link := range dead {
		fmt.Fprintln(os.Stdout, "dead link:", link)
	}
	fmt.Fprintf(os.Stdout, "%d pages, %d dead links\n", pages, len(dead))
	if len(dead) > 0 || pages == 0 {
		os.Exit(1)
	}
}

var (
	links   = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	anchors = regexp.MustCompile(`\bid="([^"]+)"`)
)

// check returns the links that lead nowhere, each after its page, and the number of pages.
func check(site fs.FS) (dead []string, pages int, err error) {
	texts := map[string]string{}
	err = fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" || name == "404.html" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		texts[name] = string(text)
		return err
	})
	ids := map[string]bool{}
	for name, text := range texts {
		for _, m := range anchors.FindAllStringSubmatch(text, -1) {
			ids[name+"#"+m[1]] = true
		}
	}
	for name, text := range texts {
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			if !leads(site, ids, name, m[1]) {
				dead = append(dead, name+": "+m[1])
			}
		}
	}
	return dead, len(texts), err
}

// leads reports whether a link on a page leads to something.
func leads(site fs.FS, ids map[string]bool, page, link string) bool {
	if strings.Contains(link, ":") || strings.HasPrefix(link, "//") {
		return true // of another site
	}
	to, anchor, _ := strings.Cut(link, "#")
	to, _, _ = strings.Cut(to, "?")
	file := page
	if to != "" {
		file = path.Join(path.Dir(page), to)
	}
	if info, err := fs.Stat(site, file); err != nil {
		return false
	} else if info.IsDir() {
		file = path.Join(file, "index.html")
	}
	return anchor == "" || anchor == "__skip" || ids[file+"#"+anchor]
}
