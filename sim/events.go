package sim

// kind says what happens at an event.
type kind uint8

const (
	arrive  kind = iota // the next call of a group of clients (id)
	think               // a client of a closed loop (id; gen is the group) makes its next call
	send                // a call (id) makes its next attempt
	expire              // the attempt of a call (id) has taken too long
	reach               // a request (id) reaches its task
	answer              // the answer to a request (id) reaches its caller
	worked              // a request (id) has had its time on a processor
	waited              // a request (id) has waited for something else than a processor
	outstay             // a request (id) has waited for the maximum time for the server policies
	leave               // the caller of a request (id) is gone
	fail                // a fault (id) begins, or ends if gen is 1
	restart             // a task (id) that has crashed is back
	scale               // a service (id) decides on its number of tasks
	begin               // a task (id) that was added serves, if it is still in its life (gen)
	sample              // a slot of the series ends
)

// An event is something that happens at a time. Of two at the same time the one
// that was pushed first comes first. It holds no pointers.
type event struct {
	at  int64  // nanoseconds since the start
	key uint64 // sequence number and kind
	ref        // what it is about: the event is void if that has ended
}

func (e *event) kind() kind { return kind(e.key & 0xff) }

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.key < f.key }

// agenda is the events to come: a heap with four children to a node, which is
// shallow and keeps siblings on few cache lines. Timeouts of one length are pushed in
// their order: most events that wait are such, and need no heap.
type agenda struct {
	heap     []event
	timeouts queue[event]
	seq      uint64
}

func (a *agenda) push(at int64, k kind, of ref) {
	a.seq++
	e := event{at, a.seq<<8 | uint64(k), of}
	if n := a.timeouts.n; k == expire && (n == 0 || a.timeouts.at(n-1).at <= at) {
		a.timeouts.push(e)
		return
	}
	a.heap = append(a.heap, e)
	h, i := a.heap, len(a.heap)-1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// pop takes out the first event. There must be one.
func (a *agenda) pop() event {
	h := a.heap
	if a.timeouts.n > 0 && (len(h) == 0 || a.timeouts.at(0).before(&h[0])) {
		return a.timeouts.oldest()
	}
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	a.heap = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		least, end := 4*i+1, min(4*i+5, len(h))
		if least >= len(h) {
			break
		}
		for child := least + 1; child < end; child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if !h[least].before(&last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return first
}
