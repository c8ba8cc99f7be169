package spillredis

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// An absent is a server that refuses connections until it is back.
type absent struct {
	back  atomic.Bool
	dials atomic.Int64
	now   atomic.Int64 // at once
	most  atomic.Int64 // of those, while it is away
}

var errRejected error = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

func (a *absent) dial() (net.Conn, error) {
	if a.back.Load() {
		client, _ := net.Pipe()
		return client, nil
	}
	a.dials.Add(1)
	a.most.Store(max(a.most.Load(), a.now.Add(1)))
	<-time.After(time.Millisecond)
	a.now.Add(-1)
	return nil, errRejected
}

// dialAll has n callers dial, and returns how many got an error, and when the last one ended.
func dialAll(r *redialer, a *absent, n int, left <-chan struct{}) (failed int64, took time.Duration) {
	var all sync.WaitGroup
	var errs atomic.Int64
	start := time.Now()
	for range n {
		all.Go(func() {
			if _, err := r.dial(a.dial, left); err != nil {
				if errs.Add(1); !errors.Is(err, syscall.ECONNREFUSED) {
					panic(err)
				}
			}
		})
	}
	all.Wait()
	return errs.Load(), time.Since(start)
}

// 1000 callers wait for a server that is away. It sees one dial at a time, and all are
// connected within 12 ms of its return.
func TestRedialReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, r := new(absent), newRedialer(10)
		r.last = errRejected // known to be away: none of the callers dials without its turn
		time.AfterFunc(500*time.Millisecond, func() { a.back.Store(true) })
		failed, took := dialAll(r, a, 1000, nil)
		if failed != 0 || took > 512*time.Millisecond || a.most.Load() > 1 || a.dials.Load() > 50 {
			t.Errorf("%d failed, connected after %v, %d dials, %d at once", failed, took, a.dials.Load(), a.most.Load())
		}
	})
}

// A server that stays away: each caller waits a second, or until its context ends.
func TestRedialGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, r := new(absent), newRedialer(1000)
		if failed, took := dialAll(r, a, 10, nil); failed != 10 || took > redialFor+20*time.Millisecond {
			t.Errorf("%d of 10 failed after %v", failed, took)
		}
		left := make(chan struct{})
		time.AfterFunc(100*time.Millisecond, func() { close(left) })
		if failed, took := dialAll(r, a, 10, left); failed != 10 || took > 120*time.Millisecond {
			t.Errorf("%d of 10 failed after %v", failed, took)
		}
	})
}

// After poolSize failures only go-redis itself dials. Its dials go on until the end of their
// context. The first success ends that.
func TestRedialProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, r := new(absent), newRedialer(10)
		if failed, _ := dialAll(r, a, 10, nil); failed != 10 {
			t.Fatalf("%d of 10 failed", failed)
		}
		time.AfterFunc(4*time.Second, func() { a.back.Store(true) })
		if failed, took := dialAll(r, a, 1, nil); failed != 0 || took > 4*time.Second+12*time.Millisecond {
			t.Errorf("%d failed after %v", failed, took)
		}
		a.back.Store(false)
		if failed, took := dialAll(r, a, 1, nil); failed != 1 || took > redialFor+20*time.Millisecond {
			t.Errorf("%d failed after %v", failed, took)
		}
	})
}
