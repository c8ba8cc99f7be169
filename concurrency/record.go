package concurrency

import (
	"time"

	"github.com/seed90641741/spillway"
)

// A record is what a Limiter knows of a request in flight. The ticket of the request has its number.
type record struct {
	serial uint64        // of the ticket: one that was settled does not match any more
	began  time.Duration // on the clock; of a suspended request, for how long it has worked
	within time.Duration // what it takes if it is ended at its deadline
	slot   int32         // the place of its key
	next   int32         // free record after this free one
	own    int32         // requests of its key that were at work when it began
	all    int32         // the same of all keys
	heard  bool          // its answer has begun, or its client has left
}

// records has a record for each request in flight. The first one is never used: 0 is none.
type records struct {
	list   []record
	free   int32
	serial uint64
}

// open makes a record and has a ticket name it.
func (rs *records) open(t *spillway.Ticket, r record) {
	i := rs.free
	if i == 0 {
		rs.list = append(rs.list, record{})
		i = int32(len(rs.list) - 1)
	}
	rs.free = rs.list[i].next
	rs.serial++
	r.serial = rs.serial
	rs.list[i] = r
	t.State, t.Epoch = uint64(i), r.serial
}

// of returns the record of a ticket, or nil if it was settled.
func (rs *records) of(t *spillway.Ticket) *record {
	if t.State == 0 || t.State >= uint64(len(rs.list)) || rs.list[t.State].serial != t.Epoch {
		return nil
	}
	return &rs.list[t.State]
}

// close ends the record of a ticket.
func (rs *records) close(t *spillway.Ticket) {
	rs.list[t.State] = record{next: rs.free}
	rs.free = int32(t.State)
}
