package mongotest

import (
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Work is the capacity of a node: a few commands at once, and each takes time. It makes
// a node that can be overloaded: commands wait in a queue without bound, also those
// whose clients have left.
type Work struct {
	// Tickets is how many commands are done at once. Zero means any number, and that
	// nothing takes time.
	Tickets int
	// Command is how long each command takes, but for hello, authentication, and what
	// reads or sets the state of the server.
	Command time.Duration
	// Connect is for how long a new connection takes a ticket before its first message is
	// read, as the handshakes of TLS and of authentication do.
	Connect time.Duration
}

// worker does the work of a node.
type worker struct {
	work    Work
	tickets chan struct{} // nil: any number
	waiting atomic.Int64
}

func newWorker(w Work) *worker {
	k := &worker{work: w}
	if w.Tickets > 0 {
		k.tickets = make(chan struct{}, w.Tickets)
	}
	return k
}

// do takes a ticket, works, and returns it. Nothing is done if stopped is closed.
func (k *worker) do(d time.Duration, stopped <-chan struct{}) {
	if k.tickets == nil || d <= 0 {
		return
	}
	k.waiting.Add(1)
	select {
	case k.tickets <- struct{}{}:
		k.waiting.Add(-1)
	case <-stopped:
		k.waiting.Add(-1)
		return
	}
	defer func() { <-k.tickets }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stopped:
	}
}

// free are the commands that take no time: those by which a server is looked at and set.
var free = map[string]bool{
	"serverStatus": true, "getParameter": true, "setParameter": true, "hostInfo": true, "buildInfo": true,
	"configureFailPoint": true, "endSessions": true,
}

// work does the work of a command.
func (r *request) work() {
	if !commands[r.name].before && !free[r.name] {
		r.node.worker.do(r.node.worker.work.Command, r.conn.closed)
	}
}

// queues are the tickets of a node, as serverStatus has them.
func (k *worker) queues() bson.D {
	out := len(k.tickets)
	tickets := bson.D{
		{Key: "out", Value: int32(out)},
		{Key: "available", Value: int32(cap(k.tickets) - out)},
		{Key: "totalTickets", Value: int32(cap(k.tickets))},
	}
	return bson.D{{Key: "read", Value: tickets}, {Key: "write", Value: tickets}}
}
