package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A checker keeps the first complaint.
type checker struct{ err error }

func (c *checker) failf(field, format string, args ...any) {
	if c.err == nil {
		c.err = &FieldError{field, fmt.Sprintf(format, args...)}
	}
}

// ok complains unless good.
func (c *checker) ok(good bool, field string, value any, want string) {
	if !good {
		c.failf(field, "is %v, must be %s", value, want)
	}
}

func (c *checker) time(field string, d time.Duration) {
	c.ok(d >= 0 && d <= maxTime, field, d, "0 to a year")
}

func (c *checker) count(field string, n, most int) {
	c.ok(n >= 0 && n <= most, field, n, fmt.Sprintf("0 to %d", most))
}

func (c *checker) number(field string, v float64) {
	c.ok(v >= 0 && v <= 1e9, field, v, "0 to 1e9")
}

func (c *checker) dist(field string, d Dist) {
	if err := d.validate(); err != nil {
		c.failf(field, "%s", strings.TrimPrefix(err.Error(), "sim: distribution "))
	}
}

// policy complains of what the constructor of a policy or a stack did not like. Such an
// error names packages and fields down to the one that is wrong: "throttle: K is 1, must be
// above 1", or "ingress: RateLimit: ratelimit: Rate is 1e9, must be at most 1e6".
func (c *checker) policy(field string, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	for {
		name, rest, ok := strings.Cut(text, ": ")
		if !ok || strings.Contains(name, " ") {
			break
		}
		if isField(name) {
			field += "." + name
		}
		text = rest
	}
	if name, rest, ok := strings.Cut(text, " "); ok && isField(name) {
		field, text = field+"."+name, rest
	}
	c.failf(field, "%s", text)
}

// isField reports whether a word is the name of a field, and not of a package.
func isField(word string) bool { return word != "" && word[0] >= 'A' && word[0] <= 'Z' }

// word complains of a word that is not one of those allowed.
func (c *checker) word(field string, word any, allowed ...any) {
	if !slices.Contains(allowed, word) {
		c.failf(field, "is %q, must be one of %v", word, allowed)
	}
}

func defaults[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
