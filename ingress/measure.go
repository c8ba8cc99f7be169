package ingress

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/cputime"
)

// maxMeters is the maximum number of requests that are measured at the same time. Each of them
// holds a thread, also while it waits.
const maxMeters = 64

// meters is how many requests are measured now.
var meters atomic.Int32

// A Meter measures the processor time of a request. The zero Meter measures nothing.
type Meter struct {
	slot *Slot         // nil: nothing is measured
	from time.Duration // processor time of the thread when the measurement began
}

// Measure begins to measure the processor time that the calling goroutine uses for the request,
// where Config.Costs asks for it and learns from the processor time of this process (Linux only).
// Until [Meter.End] the goroutine has its own thread. The work of other goroutines for the request
// is not measured.
func (p *Slot) Measure() (m Meter) {
	if !p.admission.MeasuredHere() {
		return m
	}
	if meters.Add(1) > maxMeters {
		meters.Add(-1)
		return m
	}
	runtime.LockOSThread()
	from, known := cputime.Thread()
	if !known {
		m.release()
		return m
	}
	return Meter{slot: p, from: from}
}

// End charges what the request has used. It must be called by the goroutine that called
// [Slot.Measure], exactly once and before [Slot.Done].
func (m Meter) End() {
	if m.slot == nil {
		return
	}
	to, known := cputime.Thread()
	m.release()
	if known {
		m.slot.used(time.Now(), to-m.from)
	}
}

func (Meter) release() {
	runtime.UnlockOSThread()
	meters.Add(-1)
}

// used charges what the request was measured to use.
func (p *Slot) used(now time.Time, cpu time.Duration) {
	if !p.mu.lock() {
		return
	}
	correction := p.admission.Correction(cpu)
	p.mu.unlock()
	p.Charge(now, correction)
}
