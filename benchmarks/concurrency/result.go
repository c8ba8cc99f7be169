package main

import (
	"math"

	"github.com/seed90641741/spillway"
)

// A Result counts the requests of one run, or of several runs together.
type Result struct {
	Tally
	Left    int // clients that left
	Late    int // answers after the deadline
	Keys    []Tally
	Classes [spillway.Criticalities]Tally
	latency histogram
	windows []Tally // of five seconds each
	warm    Time    // what is answered before does not count
	end     Time    // no requests are sent from then on
	digest  uint64  // of the times of all arrivals and answers
}

// A Tally counts requests.
type Tally struct {
	Offered  int `json:"offered"` // sent by clients
	Good     int `json:"good"`    // answered before their deadline
	Rejected int `json:"rejected"`
}

func (t *Tally) add(o Tally) {
	t.Offered += o.Offered
	t.Good += o.Good
	t.Rejected += o.Rejected
}

func (s *Result) key(k int) *Tally {
	for len(s.Keys) <= k {
		s.Keys = append(s.Keys, Tally{})
	}
	return &s.Keys[k]
}

// percent returns n in per cent of the offered requests.
func (t Tally) percent(n int) float64 { return 100 * float64(n) / float64(max(t.Offered, 1)) }

// worstWindow is as long as a window.
const windowSize = 5 * sec

// window returns the window of a time.
func (s *Result) window(at Time) *Tally {
	i := int(at / windowSize)
	for len(s.windows) <= i {
		s.windows = append(s.windows, Tally{})
	}
	return &s.windows[i]
}

// count adds one to each tally of a request.
func (s *Result) count(r *Request, at Time, one Tally) {
	s.window(at).add(one)
	if at < s.warm {
		return
	}
	s.add(one)
	s.key(r.Key).add(one)
	s.Classes[r.Class.Index()].add(one)
}

func (s *Result) offered(r *Request) {
	s.note(r.Sent)
	s.note(r.Service)
	s.count(r, r.Sent, Tally{Offered: 1})
}

func (s *Result) rejected(r *Request, now Time) { s.count(r, now, Tally{Rejected: 1}) }

// answered counts an answer that a client receives.
func (s *Result) answered(r *Request, now Time) {
	s.note(now)
	took := now - r.Sent
	s.latency.add(took)
	if r.Deadline > 0 && took > r.Deadline {
		s.Late++
		return
	}
	s.count(r, now, Tally{Good: 1})
}

// note adds a time to the digest (FNV-1a, by words).
func (s *Result) note(t Time) { s.digest = (s.digest ^ uint64(t)) * 1099511628211 }

// merge adds the requests of another run.
func (s *Result) merge(o *Result) {
	s.add(o.Tally)
	s.Left += o.Left
	s.Late += o.Late
	for k, t := range o.Keys {
		s.key(k).add(t)
	}
	for c, t := range o.Classes {
		s.Classes[c].add(t)
	}
	s.latency.merge(&o.latency)
	for i, t := range o.windows {
		s.window(Time(i) * windowSize).add(t)
	}
	s.note(Time(o.digest))
}

// histogram counts times in buckets that are 1 % wide, from 10 µs to 100 s.
type histogram struct {
	n       int
	sum     float64 // seconds
	buckets [1621]uint32
}

const leastTime = 1e-5 // seconds, the upper end of the first bucket

var perBucket = math.Log(1.01)

func (h *histogram) add(t Time) {
	h.n++
	h.sum += t.Seconds()
	i := int(math.Log(max(t.Seconds(), leastTime)/leastTime) / perBucket)
	h.buckets[min(i, len(h.buckets)-1)]++
}

func (h *histogram) merge(o *histogram) {
	h.n += o.n
	h.sum += o.sum
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

// quantile returns the q-quantile in milliseconds, zero without any time.
func (h *histogram) quantile(q float64) float64 {
	rest := q * float64(h.n)
	for i, n := range h.buckets {
		if rest -= float64(n); n > 0 && rest <= 0 {
			return 1e3 * leastTime * math.Exp(perBucket*(float64(i)+0.5))
		}
	}
	return 0
}

// mean returns the mean time in milliseconds, zero without any time.
func (h *histogram) mean() float64 {
	if h.n == 0 {
		return 0
	}
	return 1e3 * h.sum / float64(h.n)
}
