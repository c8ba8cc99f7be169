package spillrueidis

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
)

const (
	// slots is how many slots a cluster has. Commands without a key have a greater one.
	slots = 1 << 14
	// refreshEvery is how often the slots of the shards are read. In between, a slot that has
	// moved counts for the shard that had it: its commands go to the right one all the same. A
	// replica that was promoted counts under the address of its predecessor.
	refreshEvery = time.Minute
	// refreshFor is how long that may take.
	refreshFor = 5 * time.Second
)

// shards knows the shards of a cluster by slot. rueidis does not say to which node it sends a
// command, and one limit for all would let a shard that hangs block the others.
type shards struct {
	client rueidis.Client
	all    atomic.Pointer[[]shard]

	mu     sync.Mutex
	timer  *time.Timer // nil when closed
	closed bool
}

// A shard has the slots first to last.
type shard struct {
	first, last uint16
	master      string
}

// newShards reads the shards of a cluster now, and then regularly until close is called.
func newShards(client rueidis.Client) *shards {
	s := &shards{client: client}
	s.refresh()
	return s
}

// refresh reads the shards. If that fails, the last known shards stay.
func (s *shards) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), refreshFor)
	defer cancel()
	if all, err := parse(s.client.Do(ctx, s.client.B().ClusterSlots().Build())); err == nil {
		s.all.Store(&all)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.timer = time.AfterFunc(refreshEvery, s.refresh)
	}
}

// close ends the refreshes. Nil shards have none.
func (s *shards) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.timer != nil {
		s.timer.Stop()
	}
}

// of returns the address of the master of a slot, or nothing where none is known.
func (s *shards) of(slot uint16) string {
	if s == nil || slot >= slots {
		return ""
	}
	all := s.all.Load()
	if all == nil {
		return ""
	}
	i, found := slices.BinarySearchFunc(*all, slot, func(x shard, slot uint16) int {
		switch {
		case x.last < slot:
			return -1
		case x.first > slot:
			return 1
		default:
			return 0
		}
	})
	if !found {
		return ""
	}
	return (*all)[i].master
}

// parse reads the answer to CLUSTER SLOTS: arrays of first slot, last slot, master, replicas.
func parse(r rueidis.RedisResult) ([]shard, error) {
	rows, err := r.ToArray()
	if err != nil {
		return nil, err
	}
	var all []shard
	for _, row := range rows {
		if x, ok := parseShard(row); ok {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b shard) int { return cmp.Compare(a.first, b.first) })
	return all, nil
}

func parseShard(row rueidis.RedisMessage) (x shard, ok bool) {
	fields, err := row.ToArray()
	if err != nil || len(fields) < 3 {
		return x, false
	}
	first, err1 := fields[0].AsInt64()
	last, err2 := fields[1].AsInt64()
	master, err3 := fields[2].ToArray()
	if err1 != nil || err2 != nil || err3 != nil || len(master) < 2 || first < 0 || last < first || last >= slots {
		return x, false
	}
	host, _ := master[0].ToString() // empty: the host that was asked
	port, err := master[1].AsInt64()
	if err != nil {
		return x, false
	}
	return shard{uint16(first), uint16(last), net.JoinHostPort(host, strconv.FormatInt(port, 10))}, true
}

// policies returns the policies of commands for a slot.
func (c *Client) policies(slot uint16) *egress.Client {
	return c.pool.For(cmp.Or(c.shards.of(slot), c.backend))
}

// slotOf returns the slot of commands that are sent together: that of the first one with a key.
func slotOf(cmds []rueidis.Completed) uint16 {
	for i := range cmds {
		if slot := cmds[i].Slot(); slot < slots {
			return slot
		}
	}
	return slots
}

// spread calls send for the commands of each shard at the same time, with their indexes, and
// returns the results in the order of the commands. Commands without a key, such as MULTI, keep
// all together, and the indexes are then nil.
func spread(c *Client, n int, slot func(i int) uint16, send func(to *egress.Client, of []int) []rueidis.RedisResult) []rueidis.RedisResult {
	if n == 0 {
		return nil
	}
	if c.shards == nil {
		return send(c.policies(slots), nil)
	}
	by, together := map[*egress.Client][]int{}, false
	to := c.policies(slots)
	for i := range n {
		if slot(i) >= slots {
			together = true
			continue
		}
		to = c.policies(slot(i))
		by[to] = append(by[to], i)
	}
	if together || len(by) < 2 {
		return send(to, nil)
	}
	results := make([]rueidis.RedisResult, n)
	var all sync.WaitGroup
	var panics atomic.Pointer[any]
	for to, of := range by {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panics.Store(&p)
				}
			}()
			for i, r := range send(to, of) {
				results[of[i]] = r
			}
		})
	}
	all.Wait()
	if p := panics.Load(); p != nil { // of an Observer: here the caller can recover
		panic(*p) //nolint:forbidigo // it goes on where the caller expects it
	}
	return results
}

// pick returns the elements of all with these indexes, and all for nil.
func pick[T any](all []T, of []int) []T {
	if of == nil {
		return all
	}
	some := make([]T, len(of))
	for i, at := range of {
		some[i] = all[at]
	}
	return some
}
