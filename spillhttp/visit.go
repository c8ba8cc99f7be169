package spillhttp

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

// An heir is what a request is served as, if its outgoing calls inherit something: one
// piece of memory for all that the Handler needs for it. It is never used again, as the
// next handler may keep any part of it.
type heir struct {
	response response1
	request  http.Request
	context  inherited
}

// A sending is what a request with a body is served as. Its passage is its own, as the
// body may still be read when the handler has returned.
type sending struct {
	heir
	body    requestBody
	passage ingress.Passage
}

// visitOf returns what the answer to r is written to, and the request to serve, which
// is r if nothing is inherited and no body is to come. Otherwise its context carries the
// deadline of the call, its class if labelled, and its level of degradation. It takes over
// the passage if it returns another one.
func (h *Handler) visitOf(w http.ResponseWriter, r *http.Request, a *arrival, p *ingress.Passage) (*response1, *http.Request, *ingress.Passage) {
	header := restated(r, a)
	inherits := header != nil || a.labelled || a.level != 0 || !a.call.Deadline.IsZero()
	body := incomplete(r)
	if !inherits && !body {
		return &response1{response{ResponseWriter: w, pausing: pausing{p, &h.clock}}}, r, p
	}
	var x *heir
	if body {
		s := &sending{body: requestBody{ReadCloser: r.Body}, passage: *p} // nobody else knows of it yet
		*p = ingress.Passage{}
		p, x = &s.passage, &s.heir
		s.body.pausing = pausing{p, &h.clock}
		x.request = *r
		x.request.Body = &s.body
	} else {
		x = new(heir)
		x.request = *r
	}
	if inherits {
		c := &x.context
		c.Context, c.deadline, c.hurried = r.Context(), a.call.Deadline, a.hurried
		c.class, c.labelled, c.level = a.call.Criticality, a.labelled, a.level
		x.request = *x.request.WithContext(c)
	}
	if header != nil {
		x.request.Header = header
	}
	x.response.ResponseWriter, x.response.pausing = w, pausing{p, &h.clock}
	return &x.response, &x.request, p
}

// leave ends the visit that r is, which was served as next, at the time now, and
// returns the error that its context had by then. In r, net/http finds the files of a
// form, to remove them, and others find the route.
func leave(now time.Time, r, next *http.Request) error {
	if next == r {
		return r.Context().Err()
	}
	r.MultipartForm, r.Pattern = next.MultipartForm, next.Pattern
	if c, ok := next.Context().(*inherited); ok {
		return c.end(now)
	}
	return next.Context().Err()
}
