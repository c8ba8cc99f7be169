package message

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
)

// An Account is the share of [resources.Memory] that the bodies of one request hold. The zero
// Account holds nothing. It is safe for concurrent use.
type Account struct {
	awaited atomic.Int64 // until when its bodies were waited for, since epoch; for ever: they are now. 0: they never were

	mu     sync.Mutex
	closed bool
	held   int
}

// take takes n more bytes, and reports whether they were available.
func (a *Account) take(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !resources.Memory.Take(n) {
		return false
	}
	a.held += n
	return true
}

// Close returns all bytes. The account gets no more.
func (a *Account) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	resources.Memory.Give(a.held)
	a.closed, a.held = true, 0
}

// epoch is the zero of times. It is before the year 2000, in which virtual time begins, so that all times are positive.
var epoch = time.Now().Add(-50 * 365 * 24 * time.Hour)

// Await says that the next bytes of the body are waited for, until Came is called.
func (a *Account) Await() { a.awaited.Store(math.MaxInt64) }

// Came ends Await.
func (a *Account) Came() { a.awaited.Store(int64(time.Since(epoch))) }

// Late reports whether the deadline of a request passed while its client was waited for. That says nothing about who would
// have answered the request.
func Late(ctx context.Context) bool {
	a, ok := ctx.Value(accountKey{}).(*Account)
	deadline, has := ctx.Deadline()
	return ok && has && a.awaited.Load() > int64(deadline.Sub(epoch))
}

// accountKey is the context key of the account of a request.
type accountKey struct{}

// WithAccount returns a context in which a request has an account.
func WithAccount(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// AccountOf returns the account of a request, or nil without one.
func AccountOf(r *http.Request) *Account {
	a, _ := r.Context().Value(accountKey{}).(*Account)
	return a
}

// firstBuffer is the initial size of a buffer. The buffer doubles as the body arrives: a
// declared length alone takes no memory.
const firstBuffer = 4 << 10

// ReadAhead reads the body of a request if its length is declared and at most most, so that
// r.GetBody returns it again. If memory is short, or the body is longer, r.Body returns the
// part that was read and then the rest. Without an account it does nothing.
func (a *Account) ReadAhead(r *http.Request, most int64) error {
	if a == nil || r.GetBody != nil || r.ContentLength <= 0 || r.ContentLength > most {
		return nil
	}
	length := int(r.ContentLength)
	var text []byte
	for size := min(length, firstBuffer); ; size = min(length, 2*size) {
		if !a.take(size - cap(text)) {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(text), r.Body), r.Body}
			return nil
		}
		text = append(make([]byte, 0, size), text...)
		n, err := io.ReadFull(r.Body, text[len(text):size])
		if text = text[:len(text)+n]; err != nil {
			return err
		}
		if size == length {
			break
		}
	}
	return replace(r, text)
}

// replace makes text the body of a request. The end of the former body was not read yet.
func replace(r *http.Request, text []byte) error {
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return err // a length that was announced and exceeded is an error by itself
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body, _ = r.GetBody() // of bytes that are here: cannot fail
	return nil
}
