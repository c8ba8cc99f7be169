package report

import (
	_ "embed"
	"html/template"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

//go:embed operators.html
var operatorsHTML string

//go:embed operators.css
var operatorsCSS string

// operators has what the page of the server says of an overload.
var operators = template.Must(template.New("operators").Funcs(template.FuncMap{
	"after":    func(at float64) string { return asSet(at, nbsp+"s") },
	"badge":    strings.ToUpper,
	"coded":    coded,
	"count":    count,
	"accounts": accountsOf,
	"sum":      sum,
	"tiles":    tilesOf,
}).Parse(operatorsHTML))

// operatorsBlock returns the block about the page of the protected server; empty where it has none.
func operatorsBlock(r *drill.Result) (template.HTML, error) {
	if r.With == nil || r.With.Page == nil {
		return "", nil
	}
	var b strings.Builder
	err := operators.Execute(&b, r.With.Page)
	return template.HTML(b.String()), err
}

// coded returns a text of the page, in which what is to be typed is between backquotes.
func coded(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if part = template.HTMLEscapeString(part); i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

func sum(classes admin.Classes) (n float64) {
	for _, of := range classes {
		n += of
	}
	return n
}

// tilesOf returns the tiles of a server. The other ones are of clients, which this one has not.
func tilesOf(s *admin.State) []admin.Tile {
	return slices.DeleteFunc(slices.Clone(s.Tiles), func(t admin.Tile) bool { return t.ID == "retry-ratio" || t.ID == "throttle" })
}

// An account has the requests of a class that have ended, as the server counts them.
type account struct {
	Class                         string
	Ended, Served, Rejected, Lost float64
}

// accountsOf returns the requests of each class, the highest first.
func accountsOf(s *admin.State) (all []account) {
	for i := range spillway.Criticalities {
		class := spillway.CriticalPlus - spillway.Criticality(i)
		a := account{Class: class.String()}
		for name, ended := range s.Counts.Ended {
			n := float64(ended[class.Index()])
			a.Ended += n
			switch name {
			case accounts.Served.String():
				a.Served = n
			case accounts.Rejected.String():
				a.Rejected = n
			default:
				a.Lost += n
			}
		}
		all = append(all, a)
	}
	return all
}
