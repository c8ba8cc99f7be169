package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A Result is what a run has measured.
type Result struct {
	Go     string  `json:"go"`
	SliceS float64 `json:"slice_s"`
	Rate   float64 `json:"rate"` // requests per second where latency is measured
	Tables []Table `json:"tables"`
}

// A Table has the rows of one protocol.
type Table struct {
	Title string `json:"title"`
	Rows  []Row  `json:"rows"`
}

// A Row is what was measured of one proxy: medians of the rounds.
type Row struct {
	Name          string  `json:"name"`
	PerSecond     float64 `json:"per_second"`
	OfCaddy       float64 `json:"of_caddy"`       // PerSecond over that of caddy; 0: not known
	CPUMicros     float64 `json:"cpu_us"`         // processor time of the proxy for a request
	Busy          float64 `json:"busy"`           // share of its processor that it used meanwhile
	P50Micros     float64 `json:"p50_us"`         // at Rate
	P99Micros     float64 `json:"p99_us"`         // at Rate
	AddedP50      float64 `json:"added_p50_us"`   // to those of no proxy
	AddedP99      float64 `json:"added_p99_us"`   // to those of no proxy
	Rejected      int64   `json:"rejected"`       // in all rounds
	LeastPerSec   float64 `json:"per_second_min"` // of the rounds
	MostPerSecond float64 `json:"per_second_max"`

	perSecond, cpu, busy, p50, p99 []float64
}

// conclude makes medians of rounds.
func conclude(rows []Row) []Row {
	none, caddy := -1, -1
	for i := range rows {
		r := &rows[i]
		r.PerSecond, r.CPUMicros, r.Busy = median(r.perSecond), median(r.cpu), median(r.busy)
		r.P50Micros, r.P99Micros = median(r.p50), median(r.p99)
		r.LeastPerSec, r.MostPerSecond = slices.Min(r.perSecond), slices.Max(r.perSecond)
		switch r.Name {
		case "none":
			none = i
		case "caddy":
			caddy = i
		}
	}
	for i := range rows {
		r := &rows[i]
		if none >= 0 {
			r.AddedP50, r.AddedP99 = r.P50Micros-rows[none].P50Micros, r.P99Micros-rows[none].P99Micros
		}
		if caddy >= 0 && rows[caddy].PerSecond > 0 {
			r.OfCaddy = r.PerSecond / rows[caddy].PerSecond
		}
	}
	return rows
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// write prints the tables.
func (r *Result) write(w io.Writer) error {
	for _, t := range r.Tables {
		fmt.Fprintf(w, "%s; one processor each; %s; latency at %.0f/s\n\n", t.Title, r.Go, r.Rate)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "proxy\trequests/s\tleast\tmost\tof caddy\tCPU µs/request\tCPU used\tp50 µs\tp99 µs\tadded p50\tadded p99\trejected\t")
		for i := range t.Rows {
			x := &t.Rows[i]
			fmt.Fprintf(tw, "%s\t%.0f\t%.0f\t%.0f\t%.2f\t%.1f\t%.0f %%\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t\n", x.Name, x.PerSecond, x.LeastPerSec, x.MostPerSecond,
				x.OfCaddy, x.CPUMicros, 100*x.Busy, x.P50Micros, x.P99Micros, x.AddedP50, x.AddedP99, x.Rejected)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}
