package concurrency

import (
	"time"

	"github.com/seed90641741/spillway"
)

// A record is what a Limiter knows of a request in flight. The request's ticket has the index of
// its record.
type record struct {
	serial uint64        // number of the ticket: a ticket that was settled has another number
	began  time.Duration // start, on the clock; while suspended, how long it has worked
	within time.Duration // time from its start to its deadline, plus 5 ms
	slot   int32         // index of its key in the table
	next   int32         // index of the next free record, if this one is free
	own    int32         // requests of its key that were working when it began
	all    int32         // requests of all keys that were working when it began
	heard  bool          // its answer has begun, or its client has left

	suspended bool // its handler has suspended it, and not resumed it yet
}

// records has a record for each request in flight. The record 0 is never used: index 0 means none.
type records struct {
	list   []record
	free   int32  // index of the first free record; 0 means none
	serial uint64 // number of the latest ticket
}

// open stores a record and writes its index and number to the ticket.
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

// close frees the record of a ticket.
func (rs *records) close(t *spillway.Ticket) {
	rs.list[t.State] = record{next: rs.free}
	rs.free = int32(t.State)
}
