package report

import (
	"encoding/json"
	"html"
	"html/template"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/admin"
)

// withPage adds what the page of a program with the library said, as its own test has recorded it.
func withPage(t *testing.T, r *drill.Result) *drill.Result {
	t.Helper()
	text, err := os.ReadFile("../../../../../internal/admin/testdata/library.json")
	if err != nil {
		t.Fatal(err)
	}
	r.With.Page = &drill.Page{At: 8.8, State: new(admin.State)}
	if err := json.Unmarshal(text, r.With.Page.State); err != nil {
		t.Fatal(err)
	}
	return r
}

// wordsOf returns the text of the block about the page of the server.
func wordsOf(t *testing.T, r *drill.Result) string {
	t.Helper()
	_, block, _ := strings.Cut(render(t, r), `<section class="operators">`)
	block, _, _ = strings.Cut(block, "</section>")
	return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(block, " "))), " ")
}

// TestOperators: the report says what the page of the server said: overloaded, who, why, what now.
func TestOperators(t *testing.T) {
	r := withPage(t, fixture())
	s := r.With.Page.State
	text := wordsOf(t, r)
	for _, want := range []string{
		"at 8.8 s of the run", "WARN " + s.Verdict.Headline, s.Verdict.Text, s.Verdict.Do,
		"Offered 400/s", "Rejected 150/s 38 % of offered",
		"CRITICAL_PLUS 2,000 2,000 0 0", "SHEDDABLE_PLUS 2,000 1,000 1,000 0", "SHEDDABLE 2,000 0 2,000 0",
		s.Reasons[0].Words + ". " + s.Reasons[0].Do, "limit 24, 22 in flight, 7 waiting",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Retry ratio") {
		t.Error("the report shows the retries of a server without clients")
	}
}

// TestNoOperators: there is no block without a page, and a page that did not answer is no page without rejections.
func TestNoOperators(t *testing.T) {
	if text := wordsOf(t, fixture()); text != "" {
		t.Errorf("a run without a page has the block %q", text)
	}
	r := fixture()
	r.With.Page = &drill.Page{At: 8.8, Error: "it <hung>"}
	if text := wordsOf(t, r); !strings.Contains(text, "It did not answer: it <hung>.") || strings.Contains(text, "Who") {
		t.Errorf("a page that did not answer is shown as %q", text)
	}
}

func TestCoded(t *testing.T) {
	if got, want := coded("Run `spillway mode <mode>`: a < b."), template.HTML("Run <code>spillway mode &lt;mode&gt;</code>: a &lt; b."); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
