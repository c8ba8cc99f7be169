package main

import "math/rand/v2"

// A Backend serves the requests that the process runs. A pool has slots, like a
// pool of database connections, and a queue. A backend without a queue serves
// all requests at the same time.
type Backend struct {
	slots, busy int
	sharing     *sharing // processors that all requests share; nil means none
	slower      float64  // factor of all service times
	stalls      []span   // it stands still
	worksOn     bool     // for clients that have left: nothing tells it
	queue       []*Request
	head        int        // index of the next request in queue
	random      *rand.Rand // picks from the queue; nil means first in, first out
}

func newPool(slots int) *Backend { return &Backend{slots: slots, slower: 1} }

func noQueue() *Backend { return newPool(unlimited) }

// enqueue adds r to the queue.
func (b *Backend) enqueue(r *Request) { b.queue = append(b.queue, r) }

// dequeue takes the next request out of the queue and skips abandoned ones. It
// returns nil if the queue is empty or all slots are busy.
func (b *Backend) dequeue() *Request {
	for b.busy < b.slots && b.head < len(b.queue) {
		if b.random != nil {
			i := b.head + b.random.IntN(len(b.queue)-b.head)
			b.queue[b.head], b.queue[i] = b.queue[i], b.queue[b.head]
		}
		r := b.queue[b.head]
		b.queue[b.head] = nil
		b.head++
		if b.head > 1024 && 2*b.head > len(b.queue) {
			b.queue = append(b.queue[:0], b.queue[b.head:]...)
			b.head = 0
		}
		if r.state == queued {
			return r
		}
	}
	return nil
}

// finishes returns when a request ends that starts now and takes so long while the backend runs.
func (b *Backend) finishes(now, took Time) Time {
	end := now + took
	for _, s := range b.stalls {
		if s.from < end && s.to > now {
			end += s.to - max(s.from, now)
		}
	}
	return end
}
