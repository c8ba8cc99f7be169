package load

import (
	"time"

	"github.com/seed90641741/spillway/internal/cputime"
)

// process reads the processor time of this process.
type process struct {
	used     func() (time.Duration, error) // since the start of the process
	executor *executor
	before   time.Duration
}

func openProcess(e *executor) (source, error) {
	p := &process{used: cputime.Process, executor: e}
	var err error
	if p.before, err = p.used(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) read(d time.Duration, into *readings) error {
	used, err := p.used()
	if err != nil {
		return err
	}
	into[CPU] = (used - p.before).Seconds() / d.Seconds() / float64(p.executor.processors.Load())
	p.before = used
	return nil
}

func (p *process) measures() []Measure { return []Measure{CPU} }

func (p *process) Close() error { return nil }
