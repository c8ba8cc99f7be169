package suite_test

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
	"github.com/seed90641741/spillway/spilltest"
)

// TestLessons: what each end of a command teaches. There is no throttle here, and by the document of MongoDB only a success earns
// anything. What matters is what costs a token: an overload of the server does, and that this process lacks a descriptor does not.
func TestLessons(t *testing.T) {
	never, gone, ok := spilltest.NeverSent, spilltest.Unanswered, spilltest.Answered
	rows := []struct {
		name     string
		want     spilltest.Evidence
		attempts int // those that cost a token, and one
		steps    string
		dial     error
		limit    time.Duration
		once     bool // reads are not retried
	}{
		{name: "no descriptor", want: never, attempts: 1, dial: os.NewSyscallError("socket", syscall.EMFILE)},
		{name: "no port", want: never, attempts: 1, dial: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)},
		{name: "rejected", want: gone, dial: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, // the document has it cost tokens
		{name: "reset", want: gone, attempts: 1, steps: "c", once: true},                          // else the document has the failed retry earn a token
		{name: "deadline", want: gone, attempts: 1, steps: "b", limit: 50 * time.Millisecond},
		{name: "overloaded", want: ok, attempts: 6, steps: "OOOOOO"},
		{name: "overloaded, final", want: ok, attempts: 1, steps: "L"},
		{name: "wrong", want: ok, attempts: 1, steps: "n"},
	}
	spilltest.TestBudgetLessons(t, 0, func(t *testing.T, b *budget.Bucket) (all []spilltest.Lesson) {
		for _, row := range rows {
			d := &failingDialer{err: row.dial}
			known := make(chan struct{})
			r := setUp(t, mongotest.Config{Pipes: true}, spillmongo.Config{Budget: b, Rand: fixed(0)}, func(o *options.ClientOptions) {
				d.ContextDialer = o.Dialer
				var seen atomic.Bool
				o.SetDialer(d).SetRetryReads(!row.once).SetHeartbeatInterval(time.Hour).SetServerSelectionTimeout(100 * time.Millisecond)
				o.SetServerMonitor(&event.ServerMonitor{ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceededEvent) {
					if !seen.Swap(true) {
						close(known)
					}
				}})
			})
			<-known
			r.script.set("find", row.steps)
			all = append(all, spilltest.Lesson{Name: row.name, Want: row.want, Attempts: row.attempts, Call: func(ctx context.Context) error {
				d.fails.Store(row.dial != nil)
				if row.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.limit)
					defer cancel()
				}
				return r.coll.FindOne(ctx, bson.D{}).Err()
			}})
		}
		return all
	})
}

// A failingDialer fails while fails is set.
type failingDialer struct {
	options.ContextDialer

	err   error
	fails atomic.Bool
}

func (d *failingDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.fails.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: d.err}
	}
	return d.ContextDialer.DialContext(ctx, network, address)
}
