package spillhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

type userKey struct{}

var errCause = errors.New("on purpose")

// pair is an inherited context, and the one of the standard library that it must
// not differ from.
type pair struct {
	got, want context.Context
	end       func()
}

func newPair(parent context.Context, class spillway.Criticality, labelled bool, deadline time.Time) (p pair) {
	c := &inherited{Context: parent, deadline: deadline, class: class, labelled: labelled}
	p.got, p.want = c, parent
	if labelled {
		p.want = spillway.WithCriticality(p.want, class)
	}
	stop := func() {}
	if !deadline.IsZero() {
		p.want, stop = context.WithDeadline(p.want, deadline)
	}
	p.end = func() { c.end(time.Now()); stop() }
	return p
}

// derive puts the same on top of both.
func (p pair) derive(of func(context.Context) context.Context) pair {
	return pair{of(p.got), of(p.want), func() {}}
}

// look returns the results of all methods of a context.
func look(c context.Context, op int) string {
	d, limited := c.Deadline()
	switch op {
	case 0:
		return fmt.Sprint("error ", c.Err())
	case 1:
		return fmt.Sprint("cause ", context.Cause(c))
	case 2:
		select {
		case <-c.Done():
			return fmt.Sprint("done ", c.Err(), context.Cause(c))
		default:
			return fmt.Sprint("under way, may end: ", c.Done() != nil)
		}
	case 3:
		return fmt.Sprint("deadline ", d, limited)
	default:
		class, ok := spillway.LookupCriticality(c)
		return fmt.Sprint("values ", c.Value(userKey{}), class, ok)
	}
}

// TestInheritedContext: however and whenever it is asked, a context with a class
// and a deadline is like one of the standard library, and so are those derived.
func TestInheritedContext(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), userKey{}, "user"))
			defer cancel(nil)
			if r.IntN(3) == 0 {
				var stop context.CancelFunc
				parent, stop = context.WithTimeout(parent, time.Duration(r.IntN(10))*time.Second)
				defer stop()
			}
			var deadline time.Time
			if r.IntN(4) > 0 {
				deadline = time.Now().Add(time.Duration(r.IntN(10)-1)*time.Second + time.Microsecond) // never just when something else happens
			}
			root := newPair(parent, spillway.Criticality(r.IntN(4)-2), r.IntN(2) == 0, deadline)
			pairs := []pair{root}
			for step := range 20 {
				switch r.IntN(8) {
				case 0:
					time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
				case 1:
					pairs = append(pairs, pairs[r.IntN(len(pairs))].derive(func(c context.Context) context.Context {
						c, stop := context.WithCancel(c)
						t.Cleanup(stop)
						return c
					}))
				case 2:
					pairs = append(pairs, pairs[r.IntN(len(pairs))].derive(context.WithoutCancel))
				case 3:
					if r.IntN(4) == 0 {
						_ = root.got.Err() // whether the deadline came first is known to who asks in between
						cancel(errCause)
					}
				case 4:
					if r.IntN(4) == 0 {
						synctest.Wait()
						root.end()
					}
				default:
					synctest.Wait()
					p, op := pairs[r.IntN(len(pairs))], r.IntN(5)
					if got, want := look(p.got, op), look(p.want, op); got != want {
						t.Errorf("seed %d, step %d: %s, want %s", seed, step, got, want)
					}
				}
			}
			root.end()
		})
	}
}

// TestInheritedEnds: what ended a request is what had before it was answered.
func TestInheritedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			name          string
			asked, leaves bool
			after         time.Duration
			want          error
		}{
			{"in time", false, false, 0, nil},
			{"in time, asked", true, false, 0, nil},
			{"late", false, false, time.Minute, context.DeadlineExceeded},
			{"late, asked", true, false, time.Minute, context.DeadlineExceeded},
			{"left", false, true, 0, context.Canceled},
			{"left, asked", true, true, 0, context.Canceled},
			{"left, then late", false, true, time.Minute, context.Canceled},
		} {
			parent, cancel := context.WithCancel(t.Context())
			c := &inherited{Context: parent, deadline: time.Now().Add(time.Minute)}
			if row.asked {
				c.Done()
			}
			if row.leaves {
				cancel()
			}
			time.Sleep(row.after)
			synctest.Wait()
			if err := c.end(time.Now()); err != row.want {
				t.Errorf("%s: %v, want %v", row.name, err, row.want)
			}
			if <-c.Done(); c.Err() == nil {
				t.Errorf("%s: has not ended", row.name)
			}
			cancel()
		}
	})
}

// TestDerivedContextsAreFree: one derived from an inherited context has no
// goroutine to watch it.
func TestDerivedContextsAreFree(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &inherited{Context: parent, deadline: time.Now().Add(time.Hour)}
	before := runtime.NumGoroutine()
	var ends []context.CancelFunc
	for range 100 {
		_, end := context.WithCancel(c)
		ends = append(ends, end)
	}
	if n := runtime.NumGoroutine(); n > before+50 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	for _, end := range ends {
		end()
	}
	c.end(time.Now())
}

// TestRequestIsGivenBack: what net/http and other middleware look for in the
// request that they have handed on is there.
func TestRequestIsGivenBack(t *testing.T) {
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		t.Setenv("TMPDIR", t.TempDir())
		mux := http.NewServeMux()
		var file string
		mux.HandleFunc("POST /upload/{name}", func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil { // more goes into a file
				t.Error(err)
			}
			f, _, err := r.FormFile("file")
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			file = f.(*os.File).Name()
		})
		h := mustHandler(t, mux, ingress.Config{Shed: patient}, HandlerConfig{})
		var pattern string
		s := open(t, protocol, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			pattern = r.Pattern
		}), early)
		defer s.close()
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		_, _ = io.CopyN(must(w.CreateFormFile("file", "large")), zeros{}, 1000)
		w.Close()
		r := newRequest(t, t.Context(), http.MethodPost, &form)
		r.URL.Path = "/upload/large"
		r.Header.Set("Content-Type", w.FormDataContentType())
		r.Header.Set(headerCriticality, "SHEDDABLE")
		readAll(t, must(s.base.RoundTrip(r)))
		synctest.Wait()
		if _, err := os.Stat(file); file == "" || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file of the form %q is still there: %v", file, err)
		}
		if pattern != "POST /upload/{name}" {
			t.Errorf("pattern %q", pattern)
		}
	})
}
