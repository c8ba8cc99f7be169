// Package shed decides at a server which requests to run, which to hold back
// for a moment, and which to refuse, so that whatever is offered the server
// keeps doing as much useful work as it can, and the most critical work first.
//
// # What is full
//
// In Go a request waits in the run queue before any code sees it: a server that
// is short of processor time has few requests in its handlers and thousands of
// goroutines that are ready to run. A limit on requests in flight never fires
// there, and one on the run queue never fires where requests wait for something
// else than a processor. So two measures decide, each learnt from the traffic:
//
//	executor   [State.Runnable] < [State.Processors]: a processor is free, or
//	           about to be. It is the instantaneous reading. An average of it
//	           that is slow enough to swallow the spike of a fan-out lets a step
//	           of load in for as long.
//	in flight  the product of throughput and unqueued latency, for work that
//	           waits elsewhere (limit.go)
//
// Utilization signals (memory, or whatever the server is told of) come on top,
// with a threshold for each criticality (thresholds.go).
//
// # The room
//
// A request that finds both measures free runs at once. Otherwise it waits in a
// small room, and the most critical waiter runs as soon as there is a place
// (room.go). Only while nothing is refused, nor about to be, does the oldest of all
// run first: below its capacity a server answers as it would without a room. Whoever
// drives the [Shedder] calls [Shedder.Next] only when the executor has nothing
// better to do: by then all that has arrived was examined, which costs
// microseconds, before any more of the work that costs milliseconds begins. A
// spike, such as a request that fans out to hundreds of goroutines, passes while the
// room holds what arrives. Within a criticality the oldest waiter is first, and the
// newest once more than a fifth of it is being refused: the old ones have used up
// much of their time, and those of them that will never run are refused soon.
//
// How deep the room is decides between throughput and latency. It is 49 places
// for each processor while nothing is refused, so that what arrives unevenly is
// not. Where a class and those above it are refused it narrows to the depth that
// just keeps the executor busy (depth.go).
//
// # Whom to refuse
//
// A request is refused if the room is full and nobody less critical waits in
// it; otherwise the one of the least critical waiters that would run last makes
// place. That is the rule of the source (a class is refused only when all lower
// ones already are) at one instant. To hold it over time as well, a class is also
// refused if a higher one was refused lately; only the next lower one may have
// what the executor would otherwise leave idle (cascade.go). Nothing there needs
// tuning.
//
// A request whose deadline is nearer than the shortest time in which any
// request was served of late is refused at once, as doing it is of no use. One in a
// second is let in all the same: where only long work was done for a while, nothing
// else would tell that some requests are quicker.
//
// # Contract
//
// For each request call [Shedder.Arrive], or before a request has been parsed
// [Shedder.Refuse]. A request that is to [Run] holds a Ticket, which must be
// settled exactly once. For one that is to [Wait] the caller keeps a [Waiter],
// until Next hands it out, to be run or refused, a later Arrive does as evicted, or
// the caller takes it back with [Shedder.Expire] or [Shedder.Withdraw]. While
// [Shedder.Waiting] is above zero, Next must be asked after each Settle, and as
// long as it says so whenever the executor runs dry.
//
// Sources: Site Reliability Engineering, chapter 21, "Criticality" and
// "Utilization Signals"; for the in-flight limit, the bandwidth-delay product of
// congestion control; for the order of the room, adaptive LIFO as in Facebook's
// "Fail at Scale". Departure from the first: the source smooths the executor
// load average and compares it with thresholds. Here the queue is bounded
// instead, and the room swallows the spikes.
package shed
