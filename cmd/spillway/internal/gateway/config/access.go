package config

import "github.com/seed90641741/spillway/internal/admin/loglimit"

// Access is which requests have a line in the access log, and where it is.
type Access struct {
	File       string  `yaml:"file" jsonschema_description:"File of the access log. It is renamed to FILE.1 when it is full. The default is the standard output."`
	MaxBytes   int64   `yaml:"max_bytes" zero:"104857600" allowed:"at least 65536" jsonschema_description:"Size at which the file is renamed; both files together use twice as much at most. 0 is 104857600."`
	Sample     float64 `yaml:"sample" zero:"0.01" allowed:"at most 1" jsonschema_description:"Share of the requests that were served in time; 0 is 0.01, negative is none, 1 is all."`
	SampleLost float64 `yaml:"sample_lost" zero:"1" allowed:"at most 1" jsonschema_description:"Share of all other requests: rejected, late, failed, client gone; 0 is 1, which is all, negative is none."`
	Rate       float64 `yaml:"lines_per_second" limiter:"true" zero:"100" allowed:"above 0 and at most 100000" jsonschema_description:"Lines per second at most; those left out are counted in the next line. 0 is 100."`
}

// limiter checks a rate that is below what a limiter can do. Fields have the rest of its range.
func (k *checker) limiter(field string, perSecond float64) {
	if _, err := loglimit.NewRate(perSecond); err != nil && perSecond > 0 && perSecond < 1 {
		k.failf(field, "is %v, must be at least 1/86400, once a day", perSecond)
	}
}

// Traces is which requests have a span.
type Traces struct {
	Ratio float64 `yaml:"ratio" zero:"0.01" allowed:"above 0 and at most 1" jsonschema_description:"Share of the requests that have a span; 0 is 0.01, 1 is all. At an internal boundary the sampled flag of a traceparent decides instead."`
	Rate  float64 `yaml:"spans_per_second" limiter:"true" zero:"100" allowed:"above 0 and at most 100000" jsonschema_description:"Spans per second at most; other requests go on without one. 0 is 100."`
}
