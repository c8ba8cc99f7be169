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
// A [Listener] needs a [Handler]: use NewHandler for early rejections.
func Middleware(c HandlerConfig) (func(next http.Handler) http.Handler, error) {
	first, err := NewHandler(http.NotFoundHandler(), c) // so that none fails below
	if err != nil {
		return nil, err
	}
	return first.with, nil
}

// with returns a Handler in front of next that shares all but what it has learnt of next. It
// is cheap, as some routers call it for each request.
func (h *Handler) with(next http.Handler) http.Handler {
	if next == nil {
		next = http.DefaultServeMux
	}
	return (&Handler{config: h.config, ingress: h.ingress, closer: h.closer}).before(next)
}
