package strict

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed90641741/spillway"
)

// element is an index, a map key or a name in the path of a field of a Go struct.
var element = regexp.MustCompile(`\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?[^.\[]+`)

// Path returns how files spell the path of a field of a Go struct: names are in snake
// case, keys of maps are fields, and so are the classes of lists that have a value for
// each criticality. Shed.Thresholds[2] is shed.thresholds.critical.
func Path(of string) string {
	var b strings.Builder
	previous := ""
	for _, m := range element.FindAllStringSubmatch(of, -1) {
		switch part := m[0]; {
		case m[1] != "" && byClass[previous]:
			b.WriteString("." + class(m[1]))
		case m[1] != "":
			b.WriteString(part)
		case part[0] == '[':
			b.WriteString("." + m[2])
		default:
			previous = strings.TrimPrefix(part, ".")
			b.WriteString(snake(part))
		}
	}
	return b.String()
}

// byClass are the lists with a value for each criticality.
var byClass = map[string]bool{"Classes": true, "Thresholds": true, "Shares": true}

func class(index string) string {
	i, _ := strconv.Atoi(index)
	return strings.ToLower((spillway.Criticality(i) + spillway.Sheddable).String())
}

func snake(name string) string {
	var b strings.Builder
	previous := '.'
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(previous) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		previous = r
	}
	return b.String()
}
