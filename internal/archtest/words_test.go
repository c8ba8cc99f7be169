package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// glossary has what no file of Go says, in code, comments, texts or its name, and what it says instead: see CONTRIBUTING.
var glossary = []struct {
	not *regexp.Regexp
	say string
}{
	{regexp.MustCompile(`(?i)refus\w*`), "rejected, a rejection"},
	{regexp.MustCompile(`(?i)\w*purse\b`), "token bucket"},
	{regexp.MustCompile(`(?i)crowded\w*`), "saturated, queue full"},
	{regexp.MustCompile(`(?i)outrank\w*`), "higher class"},
	{regexp.MustCompile(`(?i)\btowards?\b`), "EWMA"},
	{regexp.MustCompile(`(?i)\w*passages?\b`), "slot, admission"},
}

// others are names of other projects and protocols with such a word: TCP and HTTP/2.
var others = regexp.MustCompile(`(?i)connections?[ _]?((is|are|was|were) )?refus\w+|refus(es|ed|e) (the |a |its |new |every |all |further )?connections?|` +
	`connectionsare?refused|refused[-_ ]?streams?\w*|ECONNREFUSED`)

// checkWords requires the words of the glossary. This file has the others.
func (c *checker) checkWords(f unit) {
	if strings.HasPrefix(f.name, "internal/archtest/words") {
		return
	}
	for at, line := range strings.Split(f.name+"\n"+f.text, "\n") {
		line = others.ReplaceAllString(line, "")
		for _, word := range glossary {
			if bad := word.not.FindString(line); bad != "" {
				c.complainf("%s:%d says %q: say %s, as in the glossary of CONTRIBUTING.md", f.name, at, bad, word.say)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"// Connections are refused, with ECONNREFUSED": "",
		"// The caller is refused":                      `budget/budget.go:3 says "refused"`,
		"func newPurse() {}":                            `budget/budget.go:3 says "newPurse"`,
		"type Passage int":                              `budget/budget.go:3 says "Passage"`,
		"var passes int":                                "",
	} {
		complaints := strings.Join(checkSample(t, map[string]string{"budget/budget.go": "package budget\n\n" + text}), "\n")
		if complaints != "" != (want != "") || !strings.Contains(complaints, want) {
			t.Errorf("%s: %q, want %q", text, complaints, want)
		}
	}
	if got := checkSample(t, map[string]string{"budget/purse.go": "package budget"}); len(got) != 1 {
		t.Errorf("the name of a file: %q", got)
	}
}
