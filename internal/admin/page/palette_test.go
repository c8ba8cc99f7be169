package page

import (
	"fmt"
	"math"
	"regexp"
	"testing"
)

// The layers of the stacked charts, from the bottom up.
var stacks = [][]string{
	{"goodput", "rejected-throttle", "rejected-inflight", "rejected-backend", "late", "timed-out", "failed", "dropped"},
	{"sheddable", "sheddable-plus", "critical", "critical-plus"},
}

// TestPalette holds that a reader who cannot distinguish red from green can distinguish the
// layers of a stacked chart, in both themes.
func TestPalette(t *testing.T) {
	for theme, name := range []string{"light", "dark"} {
		for vision, see := range map[string]func(rgb) rgb{"full": func(c rgb) rgb { return c }, "deuteranopia": deuteranopia, "protanopia": protanopia} {
			for _, layers := range stacks {
				for i, a := range layers {
					for _, b := range append([]string{"paper"}, layers[:i]...) {
						d := distance(see(paletteColor(t, a, theme)), see(paletteColor(t, b, theme)))
						if d < 20 {
							t.Errorf("%s theme, %s: %s and %s are %.1f apart, want at least 20", name, vision, a, b, d)
						}
					}
				}
			}
		}
	}
}

// rgb is a colour in linear light.
type rgb [3]float64

func paletteColor(t *testing.T, name string, theme int) rgb {
	t.Helper()
	m := regexp.MustCompile(`--` + name + `: light-dark\(#(\w{6}), #(\w{6})\)`).FindStringSubmatch(Palette)
	if m == nil {
		t.Fatalf("palette.css has no colour --%s", name)
	}
	var hex [3]uint8
	if _, err := fmt.Sscanf(m[1+theme], "%02x%02x%02x", &hex[0], &hex[1], &hex[2]); err != nil {
		t.Fatal(err)
	}
	var c rgb
	for i, v := range hex {
		c[i] = math.Pow(float64(v)/255, 2.2)
	}
	return c
}

// The dichromats of Viénot, Brettel and Mollon (1999), each as one matrix.
func deuteranopia(c rgb) rgb {
	g := 0.29275*c[0] + 0.70725*c[1]
	return rgb{g, g, -0.02234*c[0] + 0.02234*c[1] + c[2]}
}

func protanopia(c rgb) rgb {
	g := 0.11238*c[0] + 0.88762*c[1]
	return rgb{g, g, 0.00401*c[0] - 0.00401*c[1] + c[2]}
}

// distance is the difference in CIE 1976 L*a*b*: 2 is just to be seen.
func distance(a, b rgb) float64 {
	sum := 0.0
	for i, v := range lab(a) {
		sum += (v - lab(b)[i]) * (v - lab(b)[i])
	}
	return math.Sqrt(sum)
}

func lab(c rgb) [3]float64 {
	f := func(v float64) float64 {
		if v > 0.008856 {
			return math.Cbrt(v)
		}
		return 7.787*v + 16.0/116
	}
	x := f((0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.9505)
	y := f(0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2])
	z := f((0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}
