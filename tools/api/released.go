package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// missing returns the lines that are not among others.
func missing(lines, others []string) (all []string) {
	for _, line := range lines {
		if _, found := slices.BinarySearch(others, line); !found {
			all = append(all, line)
		}
	}
	return all
}

// unsaid returns the lines that are new since the last release and that the CHANGELOG does not name. Before the first
// release all are new, and none need be named.
func unsaid(lines []string, file string) (all []string, err error) {
	tags, err := exec.Command("git", "tag", "--merged", "HEAD", "--sort=-version:refname", "--list", "v*").Output()
	tag, _, released := strings.Cut(string(tags), "\n")
	if err != nil || !released {
		return nil, err
	}
	before, err := exec.Command("git", "show", tag+":"+file).Output()
	if err != nil {
		return nil, err
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	said := unreleased(string(changelog))
	for _, line := range missing(lines, strings.Split(strings.TrimSpace(string(before)), "\n")) {
		if !regexp.MustCompile(`\b` + nameOf(line) + `\b`).MatchString(said) {
			all = append(all, line)
		}
	}
	return all, nil
}

// unreleased returns the section of the CHANGELOG with this name.
func unreleased(text string) string {
	_, text, _ = strings.Cut(text, "\n## Unreleased")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// aName is the first name in a text.
var aName = regexp.MustCompile(`\w+`)

// nameOf returns the name that a line is about: of a field or method, its own.
func nameOf(line string) string {
	_, said, _ := strings.Cut(line, ", ") // the package
	if head, member, found := strings.Cut(said, ", "); found && strings.HasPrefix(head, "type ") {
		said = strings.TrimPrefix(member, "embedded ")
	} else if _, method, found := strings.Cut(said, ") "); found && strings.HasPrefix(said, "method ") {
		said = method
	} else {
		_, said, _ = strings.Cut(said, " ") // func, type, var, const
	}
	return aName.FindString(said)
}
