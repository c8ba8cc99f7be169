package spillhttp

import (
	"io"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// An attempt holds, in one object, everything that one attempt needs in addition to the
// allocations of the base, if the request of the caller cannot be sent unchanged. It is not
// reused, as the base may still be sending the body of its request when the answer has been
// read.
type attempt struct {
	request  http.Request
	deadline [1]string // the value of its header
	body     body
}

// labels are the values of the header of the criticality, by class. All requests share them, as
// a RoundTripper changes none.
var labels = func() (all [spillway.Criticalities][]string) {
	for i := range all {
		all[i] = []string{(spillway.Criticality(i) + spillway.Sheddable).String()}
	}
	return all
}()

// withHeaders returns an attempt whose request is req with another header map: the values
// in wants replace those that the request has. It returns nil if they are as they should
// be and no other header changes. The other values are shared.
func (x *exchange) withHeaders(req *http.Request, wants *own, others bool) *attempt {
	if x.own == *wants && !others {
		return nil
	}
	t := new(attempt)
	t.request = *req
	more := 1 // the baggage
	for _, want := range wants {
		if want != "" {
			more++
		}
	}
	h := copyOf(req.Header, more)
	t.request.Header = h
	for i, want := range wants {
		if want == "" && x.own[i] != "" {
			delete(h, ownHeaders[i])
		}
	}
	if wants[ownCriticality] != x.own[ownCriticality] && wants[ownCriticality] != "" {
		h[headerCriticality] = labels[x.class.Index()]
	}
	if wants[ownAttempt] != "" {
		h[headerAttempt] = []string{wants[ownAttempt]}
	}
	if wants[ownDeadline] != "" {
		t.deadline[0] = wants[ownDeadline]
		h[headerDeadline] = t.deadline[:1:1]
	}
	return t
}

// smallMap is up to how many entries a map is one piece of memory, which is copied without
// a look at its keys. One that grows beyond is made again.
const smallMap = 8

// copyOf returns a copy of h with room for more entries.
func copyOf(h http.Header, more int) http.Header {
	if len(h)+more <= smallMap && len(h) > 0 {
		return maps.Clone(h)
	}
	c := make(http.Header, len(h)+more)
	maps.Copy(c, h)
	return c
}

// hold makes attempt a keep its place in flight until the body of resp ends. The
// wrapper lives in t, if there is one.
func hold(resp *http.Response, a *egress.Attempt, t *attempt) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	if _, ok := resp.Body.(io.Writer); ok {
		return // a protocol was switched to: the connection may idle for as long as it likes
	}
	ticket := a.Hold()
	if ticket.By == nil {
		return
	}
	var b *body
	if t != nil {
		b = &t.body
	} else {
		b = new(body)
	}
	b.inner, b.ticket = resp.Body, ticket
	resp.Body = b
}

// body is the body of an answer, which keeps its place in flight until it was
// read to its end, failed, or was closed, whichever comes first.
type body struct {
	inner  io.ReadCloser
	ticket spillway.Ticket
	ended  atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.inner.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end()
	return b.inner.Close()
}

// end releases the slot, once, even if calls of Read and Close race.
func (b *body) end() {
	if b.ended.CompareAndSwap(false, true) {
		b.ticket.Settle(time.Time{}, spillway.OutcomeServed) // the limit keeps no time
	}
}
