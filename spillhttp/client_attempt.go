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

// An attempt holds, in one object, everything that one attempt needs in addition to the
// allocations of the base, if the request of the caller cannot be sent unchanged. It is not
// reused, as the base may still be sending the body of its request when the answer has been
// read.
type attempt struct {
	request  http.Request
	deadline [1]string // the value of its header
	outgoing outgoing
	body     body
}

// prepare returns the attempt with the request to send, or nil if req, that of the
// caller, can go out as it is.
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

// headers returns what the headers of Spillway are to be in the attempt.
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

// setHeaders gives t a copy of the header with the given own values. All other values are shared.
func (x *exchange) setHeaders(t *attempt, wants *own) {
	more := 1 // the baggage
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

// textOfNumber returns a level or progress as the value of its header, which is empty for 0.
func textOfNumber(n int) string {
	if n == 0 {
		return ""
	}
	return claims.ProgressValues[n][0]
}

// valuesOfNumber returns what textOfNumber made, as shared values of a header.
func valuesOfNumber(text string) []string {
	n, _ := claims.Number(text, len(claims.ProgressValues)-1)
	return claims.ProgressValues[n]
}

// baggage returns what the baggage of the attempts is to be, and whether it is another than
// that of the request. Services that know nothing of the header of Spillway pass baggage
// on, so the class is in both, and the level with it.
func (x *exchange) baggage(level spillway.Level) (values []string, changes bool) {
	switch {
	case !x.internal:
		level = 0
	case !x.labelled:
		return nil, false
	}
	return claims.ReplaceBaggage(x.request.Header[headerBaggage], x.class, x.internal, level)
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

// hold makes attempt a keep its place in flight until the body of resp ends, or ctx does. The
// wrapper lives in t, if there is one.
func hold(ctx context.Context, resp *http.Response, a *egress.Attempt, t *attempt) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	if _, ok := resp.Body.(io.Writer); ok {
		return // a protocol was switched to: the connection may idle for as long as it likes
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

// body is the body of an answer, which keeps its place in flight until it was
// read to its end, failed, or was closed, or its context has ended, whichever comes first.
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

// giveBack releases the slot before the body ends. It must not be read meanwhile. Of an attempt that may be hedged, the context
// goes on until the body ends.
func (b *body) giveBack() { b.place.GiveBack() }
