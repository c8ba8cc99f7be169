package spillgrpc

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/inflight"
)

// taking is a picker that takes turns, and counts what it has handed out by connection.
type taking struct {
	picked []*connection
	all    []balancer.SubConn // those of the channel
	next   int
	out    map[balancer.SubConn]int
}

func newTaking(n int) *taking {
	x := &taking{out: make(map[balancer.SubConn]int)}
	for range n {
		c := &connection{SubConn: &subConn{nil}}
		x.picked, x.all = append(x.picked, c), append(x.all, c.SubConn)
	}
	return x
}

func (x *taking) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	c := x.picked[x.next%len(x.picked)]
	x.next++
	x.out[c.SubConn]++
	return balancer.PickResult{SubConn: c, Done: func(balancer.DoneInfo) { x.out[c.SubConn]-- }}, nil
}

// newEjecting returns a picker that leaves out connections, above child.
func newEjecting(child *taking) *picker {
	p := &picker{child: child, limiter: must(inflight.New(inflight.Config{})), drops: &drops{}, ready: true, ejections: new(ejections)}
	for _, c := range child.picked {
		p.endpoints = append(p.endpoints, &c.endpoint)
	}
	return p
}

// picks makes n picks, ends each with done, and returns how many each connection got.
func picks(t *testing.T, p *picker, child *taking, n int, done func(balancer.SubConn) balancer.DoneInfo) []int {
	t.Helper()
	got := make(map[balancer.SubConn]int)
	for range n {
		r, err := p.Pick(balancer.PickInfo{})
		if err != nil {
			t.Fatal(err)
		}
		got[r.SubConn]++
		r.Done(done(r.SubConn))
	}
	var all []int
	for _, sc := range child.all {
		all = append(all, got[sc])
		if child.out[sc] != 0 {
			t.Errorf("the child has not got back %d picks", child.out[sc])
		}
	}
	return all
}

// busyFor is what a server says that is overloaded itself.
func busyFor(ms, scope string) balancer.DoneInfo {
	return balancer.DoneInfo{
		Err:     status.Error(codes.Unavailable, "overloaded"),
		Trailer: metadata.Pairs(keyPushback, ms, keyScope, scope),
	}
}

// TestEjection: a connection whose server is overloaded itself gets nothing until the time that it
// gave has passed, and what the child hands out for it is given back.
func TestEjection(t *testing.T) {
	for _, row := range []struct {
		name    string
		says    balancer.DoneInfo
		ejected bool
		least   time.Duration // until it has all its turns, if it has few
	}{
		{"this task", busyFor("1000", "task"), true, 0},
		{"the whole service", busyFor("1000", "service"), false, 0},
		{"one customer", balancer.DoneInfo{Err: status.Error(codes.ResourceExhausted, "quota"), Trailer: metadata.Pairs(keyPushback, "1000", keyScope, "customer")}, false, 0},
		{"no time", balancer.DoneInfo{Err: status.Error(codes.Unavailable, "overloaded"), Trailer: metadata.Pairs(keyScope, "task")}, false, time.Duration(longestRegrowth)},
		{"another failure", balancer.DoneInfo{Err: status.Error(codes.Internal, "bug"), Trailer: metadata.Pairs(keyPushback, "1000", keyScope, "task")}, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				child := newTaking(4)
				p := newEjecting(child)
				says := func(sc balancer.SubConn) balancer.DoneInfo {
					if sc == child.all[1] {
						return row.says
					}
					return balancer.DoneInfo{}
				}
				picks(t, p, child, 4, says)
				got := picks(t, p, child, 400, says)
				if row.ejected != (got[1] == 0) || row.least == 0 && !row.ejected && got[1] != 100 || got[0] < 80 || got[2] < 80 || got[3] < 80 {
					t.Errorf("after a rejection: %v", got)
				}
				if row.least > 0 && (got[1] > 20 || got[1] < 2) {
					t.Errorf("it gets the least share otherwise: %v", got)
				}
				time.Sleep(max(time.Second, row.least))
				got = picks(t, p, child, 400, func(balancer.SubConn) balancer.DoneInfo { return balancer.DoneInfo{} })
				if got[1] != 100 {
					t.Errorf("after the time: %v", got)
				}
			})
		})
	}
}

// TestEjectionOfAll: where all ask to be left alone, all get calls.
func TestEjectionOfAll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		child := newTaking(3)
		p := newEjecting(child)
		says := func(balancer.SubConn) balancer.DoneInfo { return busyFor("60000", "task") }
		picks(t, p, child, 3, says)
		for i, n := range picks(t, p, child, 300, says) {
			if n == 0 {
				t.Errorf("connection %d gets nothing", i)
			}
		}
	})
}

// TestEjectionOfMost: two of four may be left out. With three, the last one would get four
// times its load, and so all get calls.
func TestEjectionOfMost(t *testing.T) {
	for out, want := range map[int]int{1: 0, 2: 0, 3: 100} {
		inBubble(t, func(t *testing.T) {
			child := newTaking(4)
			p := newEjecting(child)
			says := func(sc balancer.SubConn) balancer.DoneInfo {
				if slices.Index(child.all, sc) < out {
					return busyFor("60000", "task")
				}
				return balancer.DoneInfo{}
			}
			picks(t, p, child, 4, says)
			got := picks(t, p, child, 400, says)
			for i := range out {
				if got[i] != want {
					t.Errorf("%d left out: %v, want %d for each of them", out, got, want)
				}
			}
		})
	}
}

// TestOneRejectionOfMany: an endpoint that serves most of its calls is not left out. It gets as
// much less as one rejection is of its recent calls, which were eleven.
func TestOneRejectionOfMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		child := newTaking(4)
		p := newEjecting(child)
		picks(t, p, child, 40, func(balancer.SubConn) balancer.DoneInfo { return balancer.DoneInfo{} })
		picks(t, p, child, 4, func(sc balancer.SubConn) balancer.DoneInfo {
			if sc == child.all[1] {
				return busyFor("60000", "task")
			}
			return balancer.DoneInfo{}
		})
		got := picks(t, p, child, 400, func(balancer.SubConn) balancer.DoneInfo { return balancer.DoneInfo{} })
		for i, n := range got {
			if i == 1 && (n < 90 || n > 96) || i != 1 && (n < 100 || n > 104) {
				t.Errorf("endpoint %d got a wrong number of calls: %v", i, got)
			}
		}
	})
}

// TestServedLongAgo: calls that were served before a pause do not keep an endpoint in for long
// that then rejects all calls, however many they were. Less than a batch of them may be counted as
// recent, and three times as many rejections are then three quarters.
func TestServedLongAgo(t *testing.T) {
	for _, served := range []int{1, batch - 1, batch, 1000*batch - 1} {
		inBubble(t, func(t *testing.T) {
			child := newTaking(4)
			p := newEjecting(child)
			ok := func(balancer.SubConn) balancer.DoneInfo { return balancer.DoneInfo{} }
			picks(t, p, child, 4*served, ok)
			time.Sleep(time.Second)
			got := picks(t, p, child, 400, func(sc balancer.SubConn) balancer.DoneInfo {
				if sc == child.all[1] {
					return busyFor("60000", "task")
				}
				return balancer.DoneInfo{}
			})
			if got[1] > 3*batch {
				t.Errorf("%d served: left out after %d rejections, want %d at most", served, got[1], 3*batch)
			}
		})
	}
}
