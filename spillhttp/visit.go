package spillhttp

import (
	"net/http"
	"time"
)

// An heir is what a request is served as, if its outgoing calls inherit something:
// one piece of memory for all that the Handler needs for it. It is never used again,
// as the next handler may keep any part of it.
type heir struct {
	response response1
	request  http.Request
	context  inherited
}

// visitOf returns what the answer to r is written to, and the request to serve, which
// is r if nothing is inherited. Otherwise its context carries the deadline of the
// call, its class if labelled, and its level of degradation.
func visitOf(w http.ResponseWriter, r *http.Request, a *arrival) (*response1, *http.Request) {
	header := restated(r, a)
	if header == nil && !a.labelled && a.level == 0 && a.call.Deadline.IsZero() {
		return &response1{response{ResponseWriter: w}}, r
	}
	h := new(heir)
	h.response.ResponseWriter = w
	c := &h.context
	c.Context, c.deadline, c.hurried = r.Context(), a.call.Deadline, a.hurried
	c.class, c.labelled, c.level = a.call.Criticality, a.labelled, a.level
	h.request = *r.WithContext(c)
	if header != nil {
		h.request.Header = header
	}
	return &h.response, &h.request
}

// leave ends the visit that r is, which was served as next, at the time now, and
// returns the error that its context had by then. In r, net/http finds the files of a
// form, to remove them, and others find the route.
func leave(now time.Time, r, next *http.Request) error {
	if next == r {
		return r.Context().Err()
	}
	r.MultipartForm, r.Pattern = next.MultipartForm, next.Pattern
	return next.Context().(*inherited).end(now)
}
