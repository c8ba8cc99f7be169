package sim

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A Dist is a distribution of lengths of time. The zero Dist is always zero. In
// text it is a word and its numbers, as [ParseDist] reads it.
type Dist struct {
	shape   shape
	mean    time.Duration // of all shapes but Uniform and Bimodal, where it is the first number
	other   time.Duration // the second number of Uniform and Bimodal
	measure float64       // sigma, shape, or share
}

type shape uint8

const (
	constant shape = iota
	exponential
	uniform
	lognormal
	pareto
	bimodal
)

// shapes say how each shape is written: a name, then times, then other numbers.
var shapes = [...]struct {
	name           string
	times, numbers int
}{
	constant:    {"constant", 1, 0},
	exponential: {"exponential", 1, 0},
	uniform:     {"uniform", 2, 0},
	lognormal:   {"lognormal", 1, 1},
	pareto:      {"pareto", 1, 1},
	bimodal:     {"bimodal", 2, 1},
}

// maxTime is the longest time that a Dist, or a Config, may name.
const maxTime = 24 * 365 * time.Hour

// Constant is always d.
func Constant(d time.Duration) Dist { return Dist{mean: d} }

// Exponential is exponential with the given mean.
func Exponential(mean time.Duration) Dist { return Dist{shape: exponential, mean: mean} }

// Uniform is uniform from least to most.
func Uniform(least, most time.Duration) Dist {
	return Dist{shape: uniform, mean: least, other: most}
}

// LogNormal is log-normal with the given mean; sigma is the deviation of the
// logarithm.
func LogNormal(mean time.Duration, sigma float64) Dist {
	return Dist{shape: lognormal, mean: mean, measure: sigma}
}

// Pareto is a power law with the given mean; the smaller alpha, the heavier the
// tail. It must be above 1.
func Pareto(mean time.Duration, alpha float64) Dist {
	return Dist{shape: pareto, mean: mean, measure: alpha}
}

// Bimodal is rare with the probability share, and usual otherwise.
func Bimodal(usual, rare time.Duration, share float64) Dist {
	return Dist{shape: bimodal, mean: usual, other: rare, measure: share}
}

// ParseDist reads a Dist: "10ms", "exponential 10ms", "uniform 5ms 15ms",
// "lognormal 10ms 0.8" (mean and sigma), "pareto 10ms 2.5" (mean and alpha),
// "bimodal 1ms 100ms 0.05" (usual, rare, share of the rare).
func ParseDist(text string) (Dist, error) {
	words := strings.Fields(text)
	if len(words) == 1 {
		words = append([]string{"constant"}, words...)
	}
	for i, s := range shapes {
		if len(words) == 1+s.times+s.numbers && words[0] == s.name {
			return Dist{shape: shape(i)}.parse(text, words[1:])
		}
	}
	return Dist{}, invalid.Field("sim", "distribution", text, "one such as 10ms, exponential 10ms, uniform 5ms 15ms, "+
		"lognormal 10ms 0.8, pareto 10ms 2.5, bimodal 1ms 100ms 0.05")
}

func (d Dist) parse(text string, numbers []string) (Dist, error) {
	var err error
	for i, word := range numbers {
		switch {
		case i >= shapes[d.shape].times:
			d.measure, err = strconv.ParseFloat(word, 64)
		case i == 0:
			d.mean, err = time.ParseDuration(word)
		default:
			d.other, err = time.ParseDuration(word)
		}
		if err != nil {
			return Dist{}, invalid.Field("sim", "distribution", text, "such that %.60q is a number or a duration", word)
		}
	}
	if allowed := d.wrong(); allowed != "" {
		return d, invalid.Field("sim", "distribution", d, "%s", allowed)
	}
	return d, nil
}

// wrong returns what d must be, empty if it is.
func (d Dist) wrong() string {
	switch {
	case d.mean < 0 || d.other < 0 || d.mean > maxTime || d.other > maxTime:
		return "of times of 0 to a year"
	case d.shape == uniform && d.other < d.mean:
		return "of a second time that is not below the first"
	case d.shape == lognormal && !(d.measure >= 0 && d.measure <= 5):
		return "of a sigma of 0 to 5"
	case d.shape == pareto && !(d.measure > 1 && d.measure <= 100):
		return "of an alpha above 1 and at most 100"
	case d.shape == bimodal && !(d.measure >= 0 && d.measure <= 1):
		return "of a share of 0 to 1"
	}
	return ""
}

// Mean returns the mean.
func (d Dist) Mean() time.Duration {
	switch d.shape {
	case uniform:
		return d.mean + (d.other-d.mean)/2
	case bimodal:
		return d.mean + time.Duration(d.measure*float64(d.other-d.mean))
	default:
		return d.mean
	}
}

// String returns the text form.
func (d Dist) String() string {
	s, text := shapes[d.shape], d.mean.String()
	if d.shape != constant {
		text = s.name + " " + text
	}
	if s.times > 1 {
		text += " " + d.other.String()
	}
	if s.numbers > 0 {
		text += " " + strconv.FormatFloat(d.measure, 'g', -1, 64)
	}
	return text
}

// MarshalText implements [encoding.TextMarshaler].
func (d Dist) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Dist) UnmarshalText(text []byte) error {
	parsed, err := ParseDist(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}

// draw returns a length of time in nanoseconds.
func (d *Dist) draw(r *stream) int64 {
	mean := float64(d.mean)
	switch d.shape {
	case exponential:
		return nanoseconds(mean * r.exponential())
	case uniform:
		return int64(d.mean) + nanoseconds(float64(d.other-d.mean)*r.float())
	case lognormal:
		return nanoseconds(mean * exp(float64(d.measure*r.normal())-float64(float64(d.measure*d.measure)/2)))
	case pareto:
		return nanoseconds(mean * (d.measure - 1) / d.measure * exp(r.exponential()/d.measure))
	case bimodal:
		if r.float() < d.measure {
			return int64(d.other)
		}
		return int64(d.mean)
	default:
		return int64(d.mean)
	}
}

// nanoseconds rounds v, which is not negative, and bounds it.
func nanoseconds(v float64) int64 { return int64(math.Round(min(v, float64(maxTime)))) }
