package top

import (
	"strings"
	"unicode/utf8"
)

// A column of a table. A cell with a number is never cut: if a table is too wide, the columns of least worth are left
// out. Only the text of the last column is cut.
type column struct {
	head  string
	worth int // the columns with the lowest are left out first; 0: of the first and the last column, it stays
	left  bool
	cells []string
}

// width returns how many columns of a terminal a text takes.
func width(text string) int { return utf8.RuneCountInString(text) }

func (c *column) width() int {
	most := width(c.head)
	for _, cell := range c.cells {
		most = max(most, width(cell))
	}
	return most
}

// leastText is the width that the last column gets at least, if need be at the expense of others.
const leastText = 16

// fit returns the columns that fit into a width, and the width of the last one.
func fit(columns []column, most int) (fitting []column, last int) {
	fitting = append(fitting, columns...)
	for {
		used, least := 0, -1
		for i := range fitting[:len(fitting)-1] {
			used += fitting[i].width() + gap
			if w := fitting[i].worth; w > 0 && (least < 0 || w < fitting[least].worth) {
				least = i
			}
		}
		text := &fitting[len(fitting)-1]
		if most-used >= min(leastText, text.width()) || least < 0 {
			return fitting, max(most-used, 1)
		}
		fitting = append(fitting[:least:least], fitting[least+1:]...)
	}
}

const gap = 2

// lines returns the lines of a table. A row with a span has that instead of all cells but the first.
func lines(columns []column, spans map[int]string, most int) (all []string) {
	fitting, last := fit(columns, most)
	row := func(cell func(*column) string) string {
		var b strings.Builder
		for i := range fitting {
			c := &fitting[i]
			if i == len(fitting)-1 {
				b.WriteString(cut(cell(c), last))
				break
			}
			pad(&b, cell(c), c.width(), c.left)
		}
		return strings.TrimRight(b.String(), " ")
	}
	all = append(all, row(func(c *column) string { return c.head }))
	for i := range columns[0].cells {
		if span, ok := spans[i]; ok {
			first := columns[0].width() + gap
			all = append(all, padded(columns[0].cells[i], first)+cut(span, max(most-first, 1)))
			continue
		}
		all = append(all, row(func(c *column) string { return c.cells[i] }))
	}
	return all
}

func pad(b *strings.Builder, text string, to int, left bool) {
	space := strings.Repeat(" ", max(0, to-width(text)))
	if left {
		b.WriteString(text + space)
	} else {
		b.WriteString(space + text)
	}
	b.WriteString(strings.Repeat(" ", gap))
}

func padded(text string, to int) string { return text + strings.Repeat(" ", max(0, to-width(text))) }

// cut returns the words of a text that fit into a width, with "…" if there are more.
func cut(text string, most int) string {
	if width(text) <= most {
		return text
	}
	kept := ""
	for word := range strings.SplitSeq(text, " ") {
		more := strings.TrimLeft(kept+" "+word, " ")
		if width(more)+width(" …") > most {
			break
		}
		kept = more
	}
	return strings.TrimLeft(kept+" …", " ")
}

// wrap returns a text in lines of a width, at most so many.
func wrap(text string, wide, most int) (all []string) {
	for text != "" {
		if len(all) == most-1 || width(text) <= wide {
			return append(all, cut(text, wide))
		}
		line, rest := "", text
		for rest != "" {
			word, more, _ := strings.Cut(rest, " ")
			if line != "" && width(line)+1+width(word) > wide {
				break
			}
			line, rest = strings.TrimLeft(line+" "+word, " "), more
		}
		all, text = append(all, line), rest
	}
	return all
}

// middle returns a name that fits into a width, without its middle: the ends of names tell processes apart.
func middle(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	head := (most - 1) / 3
	return string(r[:head]) + "…" + string(r[len(r)-(most-1-head):])
}
