package main

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
)

// alone is a [concurrency.Limiter] by itself, as around a database pool: what finds no place is rejected at once.
type alone struct {
	none
	limit *concurrency.Limiter
}

func newAlone(p *Process) Algorithm {
	return &alone{none: none{p}, limit: newLimiter()}
}

func (a *alone) Arrive(r *Request) {
	t, err := a.limit.Admit(wall(a.p), callOf(a.p, r))
	if err != nil {
		a.p.Reject(r)
		return
	}
	r.Slot = t
	a.p.Run(r)
}

func (a *alone) Finish(r *Request, served bool) {
	t := r.Slot.(spillway.Ticket)
	t.Settle(wall(a.p), outcomeOf(r, served))
}

// Suspend implements suspender.
func (a *alone) Suspend(r *Request) {
	t := r.Slot.(spillway.Ticket)
	t.Suspend(wall(a.p))
	r.Slot = t
}

// Resume implements suspender.
func (a *alone) Resume(r *Request) {
	t := r.Slot.(spillway.Ticket)
	t.Resume(wall(a.p))
	r.Slot = t
}

func (a *alone) Heartbeat() { a.limit.Beat(wall(a.p), false) }
