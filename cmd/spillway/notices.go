package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/admin"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// expiresSoon is how long before a certificate expires a notice appears: long enough to renew
// it on a working day.
const expiresSoon = 72 * time.Hour

// maxChanges is how many changes are kept, which the dashboard shows.
const maxChanges = 32

// events keeps changes and notices for operators. It is safe for concurrent use.
type events struct {
	mu      sync.Mutex
	changes []admin.Change
	broken  *admin.Notice // the last reload failed
	certs   []certificate // of listeners
}

// A certificate is the certificate of a listener.
type certificate struct {
	listener string
	until    time.Time
}

// note notes a change, or one that failed.
func (e *events) note(bad bool, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = append(e.changes, admin.Change{At: time.Now(), Text: text, Bad: bad})
	e.changes = e.changes[max(0, len(e.changes)-maxChanges):]
}

// reloaded notes the end of a reload; nil is success.
func (e *events) reloaded(err error) {
	if err == nil {
		e.note(false, "configuration reloaded")
	} else {
		e.note(true, "reload failed")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = nil
	if err != nil {
		e.broken = &admin.Notice{
			Headline: "The last reload failed; the previous configuration is in use.",
			Text:     fmt.Sprintf("%v. Mend the file: it is read again when it changes. \"spillway check\" checks it.", err),
		}
	}
}

// use reads when the certificates of listeners expire. It ignores unreadable files, which are
// reported elsewhere.
func (e *events) use(c *config.Config) {
	var certs []certificate
	add := func(name string, t *config.ServerTLS) {
		if t == nil {
			return
		}
		if pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key); err == nil && pair.Leaf != nil {
			certs = append(certs, certificate{name, pair.Leaf.NotAfter})
		}
	}
	for _, l := range c.Defaulted().Listeners {
		add(l.Name, l.TLS)
	}
	for _, m := range c.Defaulted().Mongo {
		add(m.Name, m.TLS)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.certs = certs
}

// read returns the notices and the changes at the time now.
func (e *events) read(now time.Time) (notices []admin.Notice, changes []admin.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		notices = append(notices, *e.broken)
	}
	for _, c := range e.certs {
		switch left := c.until.Sub(now); {
		case left <= 0:
			notices = append(notices, admin.Notice{
				Headline: fmt.Sprintf("The certificate of listener %s has expired.", c.listener),
				Text: fmt.Sprintf("It was valid until %s: clients that verify it cannot connect. Put a new one in its file: it is read again when it changes.",
					c.until.UTC().Format(time.DateTime)),
			})
		case left < expiresSoon:
			notices = append(notices, admin.Notice{
				Headline: fmt.Sprintf("The certificate of listener %s expires soon.", c.listener),
				Text:     fmt.Sprintf("It is valid until %s. Put a new one in its file: it is read again when it changes.", c.until.UTC().Format(time.DateTime)),
			})
		}
	}
	return notices, slices.Clone(e.changes)
}

// A logFile writes the log and remembers whether the last write failed: a full disk under the
// log shows nowhere else.
type logFile struct {
	io.Writer

	mu   sync.Mutex
	err  error
	lost int // lines since the last that was written
}

// Write implements [io.Writer].
func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err != nil {
		f.lost++
	} else {
		f.lost = 0
	}
	return n, err
}

// notice returns that lines are being lost, if they are.
func (f *logFile) notice() (n admin.Notice, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return n, false
	}
	why := f.err
	if p, ok := errors.AsType[*fs.PathError](f.err); ok {
		why = p.Err
	}
	return admin.Notice{
		Headline: "The log cannot be written.",
		Text:     fmt.Sprintf("%v; %d lines are lost. Requests do not wait for the log. Make room where it is stored.", why, f.lost),
	}, true
}
