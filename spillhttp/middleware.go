package spillhttp

import "net/http"

// Middleware returns [NewHandler] in the form that routers take: a func that puts a
// [Handler] in front of another handler. All handlers that it makes share one
// [ingress.Server], that of c or one with the zero [ingress.Config], which is never closed:
// set HandlerConfig.Ingress where it must be. It returns an error that names the field of c
// that is wrong.
//
// Put it outside of all other middleware but panic recovery and request logging, so that a
// rejected request costs nothing else. A nil next handler means [http.DefaultServeMux], as in
// an [http.Server].
//
// A [Listener] needs a [Handler]: use NewHandler for early refusals.
func Middleware(c HandlerConfig) (func(next http.Handler) http.Handler, error) {
	first, err := NewHandler(http.DefaultServeMux, c) // so that none fails below
	if err != nil {
		return nil, err
	}
	c.Ingress = first.ingress
	return func(next http.Handler) http.Handler {
		if next == nil {
			next = http.DefaultServeMux
		}
		h, err := NewHandler(next, c)
		if err != nil { // cannot be: c is as above
			return next
		}
		return h
	}, nil
}
