package spillhttp

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/claims"
)

// An attempt holds, in one object, what an attempt needs in addition to the allocations of the
// base, if the caller's request cannot be sent unchanged. It is never reused: the base may still
// send the body of its request when the answer has been read.
type attempt struct {
	request  http.Request
	deadline [1]string // value of the deadline header
	outgoing outgoing
	body     body
}

// prepare returns an attempt with the request to send, or nil if the caller's request req can be
// sent unchanged.
func (x *exchange) prepare(req *http.Request, a *egress.Attempt) (t *attempt, err error) {
	wants := x.headers(a)
	baggage, changes := x.baggage(a.Task().Level())
	again := a.Number > 0 && req.GetBody != nil
	fails := mayFail(req.Body)
	if wants == x.own && !changes && !again && !fails {
		return nil, nil //nolint:nilnil // there is no need for one
	}
	t = &attempt{request: *req}
	if wants != x.own || changes {
		x.setHeaders(t, &wants)
	}
	if changes {
		claims.Put(t.request.Header, headerBaggage, baggage)
	}
	if again {
		t.request.Body, err = req.GetBody()
	}
	if fails && err == nil {
		t.outgoing.ReadCloser = t.request.Body
		t.request.Body = &t.outgoing
	}
	return t, err
}

// headers returns the values of Spillway's headers in the attempt.
func (x *exchange) headers(a *egress.Attempt) (o own) {
	if !x.internal {
		return o
	}
	o = x.own
	if o[ownCriticality] == "" && x.labelled {
		o[ownCriticality] = x.class.String()
	}
	if t := a.Task(); t.Level() > 0 {
		o[ownLevel], o[ownProgress] = textOfNumber(int(t.Level())), textOfNumber(int(t.Progress()))
	}
	if o[ownAttempt] = ""; a.Number > 0 {
		o[ownAttempt] = strconv.Itoa(a.Number + 1)
	}
	if deadline, ok := x.request.Context().Deadline(); ok {
		o[ownDeadline] = milliseconds(deadline.Sub(a.Start))
	}
	return o
}

// setHeaders gives t a copy of the header in which Spillway's headers have the given values. All
// other values are shared with the caller's header.
func (x *exchange) setHeaders(t *attempt, wants *own) {
	more := 1 // one entry for the baggage
	for _, want := range wants {
		if want != "" {
			more++
		}
	}
	h := copyOf(t.request.Header, more)
	t.request.Header = h
	for i, want := range wants {
		if want == "" && x.own[i] != "" {
			delete(h, ownHeaders[i])
		}
	}
	if wants[ownCriticality] != "" && wants[ownCriticality] != x.own[ownCriticality] {
		h[headerCriticality] = claims.Labels[x.class.Index()]
	}
	for i, key := range [...]string{ownLevel: headerLevel, ownProgress: headerProgress} {
		if key != "" && wants[i] != "" && wants[i] != x.own[i] {
			h[key] = valuesOfNumber(wants[i])
		}
	}
	if wants[ownAttempt] != "" {
		h[headerAttempt] = []string{wants[ownAttempt]}
	}
	if wants[ownDeadline] != "" {
		t.deadline[0] = wants[ownDeadline]
		h[headerDeadline] = t.deadline[:1:1]
	}
}

// textOfNumber returns the header value of a level or progress; it is empty for 0.
func textOfNumber(n int) string {
	if n == 0 {
		return ""
	}
	return claims.ProgressValues[n][0]
}

// valuesOfNumber returns a text of textOfNumber as the values of a header, which are shared.
func valuesOfNumber(text string) []string {
	n, _ := claims.Number(text, len(claims.ProgressValues)-1)
	return claims.ProgressValues[n]
}

// baggage returns the baggage of the attempts, and whether it differs from that of the request. It
// carries class and level, too, because services that do not know Spillway's headers pass baggage
// on.
func (x *exchange) baggage(level spillway.Level) (values []string, changes bool) {
	switch {
	case !x.internal:
		level = 0
	case !x.labelled:
		return nil, false
	}
	return claims.ReplaceBaggage(x.request.Header[headerBaggage], x.class, x.internal, level)
}

// smallMap is the number of entries up to which a map is one piece of memory, which maps.Clone
// copies without hashing. A clone that grows beyond that is built again.
const smallMap = 8

// copyOf returns a copy of h that can take more entries without growing.
func copyOf(h http.Header, more int) http.Header {
	if len(h)+more <= smallMap && len(h) > 0 {
		return maps.Clone(h)
	}
	c := make(http.Header, len(h)+more)
	maps.Copy(c, h)
	return c
}

// hold makes attempt a keep its slot until the body of resp ends, or ctx does. The wrapper of the
// body is part of t, unless t is nil.
func hold(ctx context.Context, resp *http.Response, a *egress.Attempt, t *attempt) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	if _, ok := resp.Body.(io.Writer); ok {
		return // the protocol was switched, so the connection may be idle for any time
	}
	var b *body
	if t != nil {
		b = &t.body
	} else {
		b = new(body)
	}
	if a.Hold(ctx, &b.place) {
		b.inner = resp.Body
		resp.Body = b
	}
}

// body is the body of an answer. It keeps the slot of its attempt until it was read to its end,
// failed or was closed, or until its context has ended.
type body struct {
	inner io.ReadCloser
	place inflight.Hold
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.inner.Read(p)
	if err != nil {
		b.place.End()
	}
	return n, err
}

func (b *body) Close() error {
	defer b.place.End()
	return b.inner.Close()
}

// giveBack releases the slot before the body ends. The body must not be read at the same time. In
// an attempt that may be hedged, the context stays alive until the body ends.
func (b *body) giveBack() { b.place.GiveBack() }
