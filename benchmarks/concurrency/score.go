package main

import (
	"runtime"
	"sync"
)

// A variant is a named way to make an algorithm.
type variant struct {
	name  string
	maker Maker
}

// seeds are the n seeds from+1, from+2 and so on.
type seeds struct{ n, from uint64 }

func (s seeds) list() (l []uint64) {
	for i := range s.n {
		l = append(l, s.from+i+1)
	}
	return l
}

// An oracle is the result of the best static limit over all seeds together.
type oracle struct {
	Limit int `json:"limit"`
	Tally
	P99     float64 `json:"p99_ms"`            // of the answers
	Windows []int   `json:"windows,omitempty"` // good requests of each five seconds
}

// oracleOf returns a result with a limit as an oracle.
func oracleOf(limit int, r *Result) oracle {
	o := oracle{Limit: limit, Tally: r.Tally, P99: r.latency.quantile(0.99)}
	for _, w := range r.windows {
		o.Windows = append(o.Windows, w.Good)
	}
	return o
}

// A score compares an algorithm with the oracle of a scenario.
type score struct {
	*Result
	Percent float64 // of the oracle's good requests
	False   float64 // rejections beyond the oracle's, in per cent of the offered requests
	P99     float64 // of the answers, in ms
	Worst   float64 // five seconds, in per cent of the oracle's good requests in these
}

func (o oracle) score(r *Result) score {
	return score{
		Result:  r,
		Percent: 100 * float64(r.Good) / float64(max(o.Good, 1)),
		False:   r.percent(max(0, r.Rejected-o.Rejected)),
		P99:     r.latency.quantile(0.99),
		Worst:   o.worst(r),
	}
}

// worst returns the worst five seconds of a result, of those in which the oracle serves a round of requests.
func (o oracle) worst(r *Result) float64 {
	worst := 100.0
	for i, good := range o.Windows {
		if good >= 32 && Time(i)*windowSize >= r.warm && Time(i+1)*windowSize <= r.end {
			worst = min(worst, 100*float64(r.window(Time(i)*windowSize).Good)/float64(good))
		}
	}
	return worst
}

// runs are simulations to do in parallel, each scenario with all seeds.
type runs struct {
	seeds seeds
	jobs  []job
}

type job struct {
	sc    *Scenario
	maker Maker
	done  func(*Result)
}

// add plans a run of a scenario for each seed. Done gets the sum. Calls of done
// have the order of the calls of add and come from one goroutine.
func (rs *runs) add(sc *Scenario, maker Maker, done func(*Result)) {
	rs.jobs = append(rs.jobs, job{sc, maker, done})
}

// do does all runs. The result does not depend on their order.
func (rs *runs) do() {
	list := rs.seeds.list()
	results := make([]*Result, len(rs.jobs)*len(list))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				j := rs.jobs[i/len(list)]
				results[i] = simulate(j.sc, list[i%len(list)], j.maker)
			}
		})
	}
	for i := range results {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, j := range rs.jobs {
		sum := results[i*len(list)]
		for _, r := range results[i*len(list)+1 : (i+1)*len(list)] {
			sum.merge(r)
		}
		j.done(sum)
	}
}

// A row is a scenario with its oracle and the scores of some algorithms.
type row struct {
	*Scenario
	digest uint64 // of the scenario without a limit
	free   bool   // nothing need be rejected: without a limit 99 % are served
	oracle oracle
	scores []score
}

// evaluate returns a row for each scenario, with a score for each variant.
func evaluate(list []*Scenario, vs []variant, s seeds, known *cache) []*row {
	rows := oracles(list, s, known)
	rs := runs{seeds: s}
	for _, r := range rows {
		for _, v := range vs {
			rs.add(r.Scenario, v.maker, func(res *Result) { r.scores = append(r.scores, r.oracle.score(res)) })
		}
	}
	rs.do()
	return rows
}

// oracles returns a row for each scenario, without scores.
func oracles(list []*Scenario, s seeds, known *cache) []*row {
	rows := make([]*row, len(list))
	first := runs{seeds: s}
	for i, sc := range list {
		r := &row{Scenario: sc}
		rows[i] = r
		first.add(sc, newNone, func(res *Result) {
			r.oracle = oracleOf(unlimited, res)
			r.digest = res.digest
			r.free = float64(res.Good) >= 0.99*float64(res.Offered)
		})
	}
	first.do()
	rest := runs{seeds: s}
	for _, r := range rows {
		if r.Overload && !known.get(r, s) {
			for _, limit := range r.candidates() {
				rest.add(r.Scenario, newStatic(limit), func(res *Result) { r.offer(limit, res) })
			}
		}
	}
	rest.do()
	known.put(rows, s)
	return rows
}

// offer makes a static limit the oracle if it is better than the one so far.
func (r *row) offer(limit int, res *Result) {
	if res.Good > r.oracle.Good {
		r.oracle = oracleOf(limit, res)
	}
}
