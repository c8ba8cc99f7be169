package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/telemetry"
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

func (e *events) note(bad bool, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = append(e.changes, admin.Change{At: time.Now(), Text: text, Bad: bad})
	e.changes = e.changes[max(0, len(e.changes)-maxChanges):]
}

// reloaded notes the end of a reload; nil is success.
func (e *events) reloaded(err error) {
	text, broken := "configuration reloaded", (*admin.Notice)(nil)
	if err != nil {
		text, broken = "reload failed", &admin.Notice{
			Kind: telemetry.NoticeReload, Headline: "The last reload failed; the previous configuration is in use.",
			Text: fmt.Sprintf("%v. Mend the file: it is read again when it changes. \"spillway check\" checks it.", err),
		}
	}
	e.note(err != nil, text)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = broken
}

// A secured is a listener with a certificate.
type secured struct {
	name string
	tls  *config.ServerTLS // nil: without
}

// listenersOf returns the listeners of a proxy.
func listenersOf(c *config.Config) (all []secured) {
	for _, l := range c.Listeners {
		all = append(all, secured{l.Name, l.TLS})
	}
	for _, m := range c.Mongo {
		all = append(all, secured{m.Name, m.TLS})
	}
	return all
}

// use reads when the certificates of listeners expire. It ignores unreadable files, which are
// reported elsewhere.
func (e *events) use(listeners ...secured) {
	var certs []certificate
	for _, l := range listeners {
		if l.tls == nil {
			continue
		}
		if pair, err := tls.LoadX509KeyPair(l.tls.Certificate, l.tls.Key); err == nil && pair.Leaf != nil {
			certs = append(certs, certificate{l.name, pair.Leaf.NotAfter})
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.certs = certs
}

func (e *events) read(now time.Time) (notices []admin.Notice, changes []admin.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		notices = append(notices, *e.broken)
	}
	for _, c := range e.certs {
		left := c.until.Sub(now)
		if left >= expiresSoon {
			continue
		}
		kind, when := telemetry.NoticeExpires, "expires soon"
		text := fmt.Sprintf("It is valid until %s.", c.until.UTC().Format(time.DateTime))
		if left <= 0 {
			kind, when = telemetry.NoticeExpired, "has expired"
			text = fmt.Sprintf("It was valid until %s: clients that verify it cannot connect.", c.until.UTC().Format(time.DateTime))
		}
		notices = append(notices, admin.Notice{
			Kind: kind, Subject: c.listener, Headline: fmt.Sprintf("The certificate of listener %s %s.", c.listener, when),
			Text: text + " Put a new one in its file: it is read again when it changes.",
		})
	}
	return notices, slices.Clone(e.changes)
}

// addLog adds a log to levels, and a notice if its lines are being lost.
func addLog(l *admin.Levels, name, words string, s logs.Stats) {
	l.Logs = append(l.Logs, admin.Log{Name: name, Lost: s.LostTotal})
	if n, lost := lostNotice(words, s); lost {
		l.Notices = append(l.Notices, n)
	}
}

// lostNotice returns the notice that lines of a log are being lost, if they are.
func lostNotice(log string, s logs.Stats) (n admin.Notice, lost bool) {
	if s.LostNow == 0 {
		return n, false
	}
	why := "The last write has not ended: the reader of the pipe has stopped, or the disk hangs"
	if s.Err != nil {
		why = s.Err.Error()
	}
	if p, ok := errors.AsType[*fs.PathError](s.Err); ok {
		why = p.Err.Error()
	}
	return admin.Notice{
		Kind: telemetry.NoticeLog, Subject: log, Headline: fmt.Sprintf("The %s cannot be written.", log),
		Text: fmt.Sprintf("%s; %d lines are lost. Requests do not wait for the log. Make room where it is stored, or see why it is not read.", why, s.LostNow),
	}, true
}
