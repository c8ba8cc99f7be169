package policyconf

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway/load"
)

// A combination computes a utilization from readings.
type combination = func([]load.Reading) float64

// The bounds of a formula. They keep its evaluation, ten times a second, below a
// few microseconds.
const (
	maxFormula = 1000 // bytes
	maxNesting = 20
)

// parseCombination returns the function of a formula: nil for the
// maximum, which is the default of package load.
//
//	sum    = product { ("+" | "-") product }
//	product = factor { ("*" | "/") factor }
//	factor = number | name | ("max" | "min") "(" sum { "," sum } ")" | "(" sum ")"
//
// A name is that of a measure, and its value is the share. A measure that is not
// known counts as 0, and so does a division by 0.
func parseCombination(text string) (combination, error) {
	if t := strings.TrimSpace(text); t == "" || t == "max" {
		return nil, nil //nolint:nilnil // the default needs no function
	}
	if len(text) > maxFormula {
		return nil, fmt.Errorf("has %d bytes, must have at most %d", len(text), maxFormula)
	}
	p := formula{rest: text}
	f, err := p.sum(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.rest != "" {
		return nil, fmt.Errorf("has %.20q where an operator or the end must be", p.rest)
	}
	return f, nil
}

// formula is what is left to parse.
type formula struct{ rest string }

func (p *formula) space() { p.rest = strings.TrimLeft(p.rest, " \t\n") }

// take reports whether c comes next, and takes it.
func (p *formula) take(c byte) bool {
	if p.space(); p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *formula) sum(depth int) (combination, error) {
	a, err := p.product(depth)
	for err == nil {
		var b combination
		left := a
		switch {
		case p.take('+'):
			b, err = p.product(depth)
			a = func(r []load.Reading) float64 { return left(r) + b(r) }
		case p.take('-'):
			b, err = p.product(depth)
			a = func(r []load.Reading) float64 { return left(r) - b(r) }
		default:
			return a, nil
		}
	}
	return nil, err
}

func (p *formula) product(depth int) (combination, error) {
	a, err := p.factor(depth)
	for err == nil {
		var b combination
		left := a
		switch {
		case p.take('*'):
			b, err = p.factor(depth)
			a = func(r []load.Reading) float64 { return left(r) * b(r) }
		case p.take('/'):
			b, err = p.factor(depth)
			a = func(r []load.Reading) float64 { return divide(left(r), b(r)) }
		default:
			return a, nil
		}
	}
	return nil, err
}

func divide(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (p *formula) factor(depth int) (combination, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("has more than %d levels of parentheses", maxNesting)
	}
	if p.take('(') {
		f, err := p.sum(depth + 1)
		if err == nil && !p.take(')') {
			err = errors.New("lacks a closing parenthesis")
		}
		return f, err
	}
	word := p.word()
	if v, err := strconv.ParseFloat(word, 64); err == nil && word[0] <= '9' { // not Inf and NaN
		return func([]load.Reading) float64 { return v }, nil
	}
	if word == "max" || word == "min" {
		return p.extreme(word == "min", depth)
	}
	return share(word)
}

// word takes letters, digits and points.
func (p *formula) word() string {
	p.space()
	n := strings.IndexFunc(p.rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_'
	})
	if n < 0 {
		n = len(p.rest)
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

// extreme parses the arguments of max or min.
func (p *formula) extreme(least bool, depth int) (combination, error) {
	if !p.take('(') {
		return nil, errors.New("must have parentheses after max and min")
	}
	var all []combination
	for more := true; more; more = p.take(',') {
		f, err := p.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if !p.take(')') {
		return nil, errors.New("lacks a closing parenthesis")
	}
	return func(r []load.Reading) float64 {
		v := all[0](r)
		for _, f := range all[1:] {
			if least {
				v = min(v, f(r))
			} else {
				v = max(v, f(r))
			}
		}
		return v
	}, nil
}

// share returns the share of a measure.
func share(name string) (combination, error) {
	var names []string
	for m := range load.Measure(load.Measures) {
		names = append(names, m.String())
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("has %.20q where a number or one of %s must be", name, strings.Join(names, ", "))
	}
	return func(readings []load.Reading) float64 {
		for i := range readings {
			if readings[i].Name == name {
				return readings[i].Share
			}
		}
		return 0
	}, nil
}
