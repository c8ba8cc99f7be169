package main

import (
	"math"
	"math/rand/v2"
)

// A rate says how many requests per second clients send at a time.
type rate func(t Time) float64

func flat(perSecond float64) rate { return func(Time) float64 { return perSecond } }

// A generator makes the request that a client sends at a time, with random numbers
// from rng.
type generator func(at Time, rng *rand.Rand) *Request

// rateStep is the interval in which a rate counts as constant.
const rateStep = 10 * ms

// poisson lets many independent clients send requests until the end of the run.
func (p *Process) poisson(perSecond rate, request generator) {
	rng := p.random()
	var arrive func(at Time)
	next := func(t Time) {
		if t = after(t, p.end, perSecond, rng.ExpFloat64()); t < p.end {
			p.at(t, arrive)
		}
	}
	arrive = func(at Time) {
		p.send(at, request(at, rng))
		next(at)
	}
	next(0)
}

// after returns when the integral of a rate from t on reaches need, or end.
func after(t, end Time, perSecond rate, need float64) Time {
	for t < end {
		step := rateStep - t%rateStep
		if have := perSecond(t) * step.Seconds(); have < need {
			need -= have
			t += step
			continue
		}
		return t + Time(need/perSecond(t)*float64(sec))
	}
	return end
}

// loop adds a client that sends one request at a time: it waits for the answer,
// good or bad, pauses, and sends the next one.
func (p *Process) loop(pause func(rng *rand.Rand) Time, request generator) {
	rng := p.random()
	var arrive func(at Time)
	next := func() {
		if t := p.now + pause(rng); t < p.end {
			p.at(t, arrive)
		}
	}
	arrive = func(at Time) {
		r := request(at, rng)
		r.answered = func(*Request, bool) { next() }
		p.send(at, r)
	}
	next()
}

// A distribution draws random times.
type distribution func(rng *rand.Rand) Time

func constant(t Time) distribution { return func(*rand.Rand) Time { return t } }

// around is uniform, and differs from the mean by at most a share of it.
func around(mean Time, share float64) distribution {
	return func(rng *rand.Rand) Time { return Time(float64(mean) * (1 + share*(2*rng.Float64()-1))) }
}

func exponential(mean Time) distribution {
	return func(rng *rand.Rand) Time { return Time(float64(mean) * rng.ExpFloat64()) }
}

// lognormal has a standard deviation of sigma in the logarithm.
func lognormal(mean Time, sigma float64) distribution {
	mu := math.Log(float64(mean)) - sigma*sigma/2
	return func(rng *rand.Rand) Time { return Time(math.Exp(mu + sigma*rng.NormFloat64())) }
}

// stalled stops the process for about 30 % of a span, 50 to 500 ms at a time.
func (p *Process) stalled(from, to Time) { p.stalls = append(p.stalls, p.standstills(from, to)...) }

// standstills are about 30 % of a span, 50 to 500 ms at a time.
func (p *Process) standstills(from, to Time) (all []span) {
	rng, up := p.random(), exponential(640*ms)
	for t := from; t < to; {
		t += up(rng)
		down := 50*ms + Time(rng.Float64()*float64(450*ms))
		all = append(all, span{t, t + down})
		t += down
	}
	return all
}
