package sim

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// A stream is a seeded source of random numbers. All arithmetic here is the same
// on every machine: package math has assembly for some functions on some of them,
// and a compiler may fuse a product and a sum into one rounding unless the product
// is converted.
type stream struct{ pcg rand.PCG }

func newStream(seed, id uint64) *stream {
	s := new(stream)
	s.pcg.Seed(seed, id)
	return s
}

// float returns a number in [0, 1).
func (s *stream) float() float64 { return float64(s.pcg.Uint64()>>11) * 0x1p-53 }

// below returns a whole number in [0, n).
func (s *stream) below(n int) int {
	high, _ := bits.Mul64(s.pcg.Uint64(), uint64(n))
	return int(high)
}

// exponential returns a number of mean 1.
func (s *stream) exponential() float64 { return -ln(1 - s.float()) }

// normal returns a number of mean 0 and deviation 1, by the polar method.
func (s *stream) normal() float64 {
	for {
		x, y := 2*s.float()-1, 2*s.float()-1
		if r := float64(x*x) + float64(y*y); r > 0 && r < 1 {
			return x * math.Sqrt(-2*ln(r)/r)
		}
	}
}

// ln returns the natural logarithm of x, which must be positive and finite: of the
// mantissa by the series of the inverse hyperbolic tangent.
func ln(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := (m - 1) / (m + 1)
	z, sum := float64(s*s), 0.0
	for n := 21; n >= 1; n -= 2 {
		sum = float64(sum*z) + 1/float64(n)
	}
	return float64(float64(e)*math.Ln2) + float64(2*s*sum)
}

// exp returns the exponential of x, which must be small enough for it.
func exp(x float64) float64 {
	k := math.Round(x / math.Ln2)
	r, sum := x-float64(k*math.Ln2), 1.0
	for n := 15.0; n >= 1; n-- {
		sum = 1 + float64(sum*r)/n
	}
	return math.Ldexp(sum, int(k))
}
