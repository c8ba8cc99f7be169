package spillhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spilltest"
)

// The writer that a handler gets has each method that the writer of this version of net/http has for the protocol, and
// is a CloseNotifier and a Pusher where that is one: frameworks assert it without asking.
func TestWriterHasAllMethods(t *testing.T) {
	for _, protocol := range []string{"HTTP1", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				original, ours := writerType(t, protocol, nil), writerType(t, protocol, func(next http.Handler) http.Handler {
					h := mustHandler(t, next, ingress.Config{Shed: patient}, HandlerConfig{})
					h.looks.Store(lookOn)
					return h
				})
				if original == ours {
					t.Fatalf("the handler has the writer of net/http, %v", ours)
				}
				for _, method := range spilltest.MissingMethods(original, ours) {
					t.Errorf("%v has no %s", ours, method)
				}
			})
		})
	}
}

// writerType returns the type of the writer that a handler gets.
func writerType(t *testing.T, protocol string, protect func(http.Handler) http.Handler) (of reflect.Type) {
	t.Helper()
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { of = reflect.TypeOf(w) })
	if protect != nil {
		h = protect(h)
	}
	s := open(t, protocol, h, false)
	defer s.close()
	must(s.base.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))).Body.Close()
	return of
}

type closeNotifier interface{ CloseNotify() <-chan bool }

// A handler learns from CloseNotify that the client has left, also below a writer that hides the method.
func TestCloseNotify(t *testing.T) {
	hidden := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(struct{ http.ResponseWriter }{w}, r) })
	}
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		for name, outer := range map[string]func(http.Handler) http.Handler{"direct": nil, "hidden": hidden} {
			began, gone := make(chan struct{}), make(chan struct{})
			inner := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				notify := w.(closeNotifier).CloseNotify()
				close(began)
				<-notify
				close(gone)
			}), ingress.Config{Shed: patient}, HandlerConfig{})
			inner.looks.Store(lookOn)
			var h http.Handler = inner
			if outer != nil {
				h = outer(inner)
			}
			s := open(t, protocol, h, early)
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, leave)
			if _, err := s.base.RoundTrip(newRequest(t, ctx, http.MethodGet, nil)); err == nil {
				t.Errorf("%s: answered", name)
			}
			<-began
			<-gone
			s.close()
			nothingLeft(t, inner)
		}
	})
}

// pusher is a writer that can push.
type pusher struct {
	*httptest.ResponseRecorder

	pushed string
}

func (p *pusher) Push(target string, _ *http.PushOptions) error {
	p.pushed = target
	return nil
}

// Over HTTP/2 a handler pushes through its writer, and learns where that is not possible.
func TestPush(t *testing.T) {
	var err error
	h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		err = w.(http.Pusher).Push("/style.css", nil)
		_, _ = io.WriteString(w, "page")
	}), ingress.Config{Shed: patient}, HandlerConfig{})
	h.looks.Store(lookOn)
	r := incoming(t)
	r.ProtoMajor, r.ProtoMinor = 2, 0
	w := &pusher{ResponseRecorder: httptest.NewRecorder()}
	if h.ServeHTTP(w, r); err != nil || w.pushed != "/style.css" || w.Body.String() != "page" {
		t.Errorf("%v, pushed %q, answered %q", err, w.pushed, w.Body)
	}
	if h.ServeHTTP(httptest.NewRecorder(), r); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("%v, want that it is not supported", err)
	}
}

// A handler that has taken over the connection, or has begun an answer with trailers and full duplex, and then panics leaves nothing.
func TestPanicAfterTheAnswerBegan(t *testing.T) {
	for name, begins := range map[string]func(http.ResponseWriter) error{
		"hijack": func(w http.ResponseWriter) error {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				err = c.Close()
			}
			return err
		},
		"answer": func(w http.ResponseWriter) error {
			control := http.NewResponseController(w)
			w.Header().Set("Trailer", "X-End")
			w.WriteHeader(http.StatusEarlyHints)
			_, err := io.WriteString(w, "begun")
			return errors.Join(err, control.EnableFullDuplex(), control.SetReadDeadline(time.Now().Add(time.Minute)), control.Flush())
		},
	} {
		for _, early := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					recovered := make(chan any, 1)
					h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						if err := begins(w); err != nil {
							t.Error(err)
						}
						panic(http.ErrAbortHandler)
					}), ingress.Config{Shed: patient}, HandlerConfig{})
					h.looks.Store(lookOn)
					s := openWith(t, "HTTP1", h, early, func(s *http.Server) {
						s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							defer func() { recovered <- recover() }()
							h.ServeHTTP(w, r)
						})
					})
					if resp, err := s.base.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil)); err == nil {
						_ = resp.Body.Close()
					}
					if got := <-recovered; got != http.ErrAbortHandler {
						t.Errorf("recovered %v", got)
					}
					s.close()
					nothingLeft(t, h)
				})
			})
		}
	}
}
