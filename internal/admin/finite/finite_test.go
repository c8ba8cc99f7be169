package finite

import (
	"math"
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	for _, row := range []struct{ v, want float64 }{
		{0, 0}, {-1.5, -1.5}, {math.MaxFloat64, math.MaxFloat64}, {-math.MaxFloat64, -math.MaxFloat64},
		{math.Inf(1), 0}, {math.Inf(-1), 0}, {math.NaN(), 0},
	} {
		if got := Number(row.v); got != row.want {
			t.Errorf("Number(%v) is %v, want %v", row.v, got, row.want)
		}
	}
}

func TestAll(t *testing.T) {
	type part struct{ Levels [2]float64 }
	type whole struct {
		part
		Name  string
		Parts []part
		One   *part
		None  *part
		Times []time.Time
		own   float64
	}
	inf := math.Inf(1)
	v := whole{
		part: part{[2]float64{1, math.NaN()}}, Parts: []part{{[2]float64{inf, 2}}, {[2]float64{-inf, 3}}}, One: &part{[2]float64{4, inf}},
		Times: []time.Time{time.Now()}, own: inf,
	}
	All(&v)
	if v.Parts[0].Levels != [2]float64{0, 2} || v.Parts[1].Levels != [2]float64{0, 3} || v.One.Levels != [2]float64{4, 0} || v.own != inf {
		t.Errorf("%+v", v)
	}
}
