// Package resets counts the connections that a listener resets, by the setting that they are reset
// for, and writes a line of the log for some of them: their clients get no answer that says why.
package resets

import (
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/human"
	"github.com/seed90641741/spillway/internal/admin/loglimit"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/netconn"
)

// A Reason is why a connection is reset, by the setting of an HTTP listener.
type Reason uint8

// The reasons. MongoDB listeners have the first two.
const (
	ConnectionRate Reason = iota
	MaxConnections
	Peers
	Overload
	MaxHeaderBytes
	Reasons = iota
)

var names = [Reasons]string{"connection_rate", "max_connections", "peers", "overload", "max_header_bytes"}

// String returns the name of the setting.
func (r Reason) String() string { return names[r] }

var advice = [Reasons]string{
	"More connections arrive per second than connection_rate: have clients keep connections open, or raise it.",
	"max_connections are open, or three quarters of them and this client has a quarter: have clients share connections, or raise it.",
	"The client is not in the networks of peers: add its network, if it may connect.",
	"Connections keep the processors from serving requests: have clients keep connections open, or add processors.",
	"The client sends long heads of requests again and again that become no request, or have more than 1,000 lines: have it send fewer headers.",
}

// Counts are connections that were reset, by Reason.
type Counts struct {
	ConnectionRate uint64 `json:"connection_rate"`
	MaxConnections uint64 `json:"max_connections"`
	Peers          uint64 `json:"peers"`
	Overload       uint64 `json:"overload"`
	MaxHeaderBytes uint64 `json:"max_header_bytes"`
}

// Total returns the sum.
func (c Counts) Total() (n uint64) {
	for _, of := range c.all() {
		n += of
	}
	return n
}

// Plus returns the sums of two Counts.
func (c Counts) Plus(d Counts) Counts {
	a, b := c.all(), d.all()
	for r := range a {
		a[r] += b[r]
	}
	return counts(a)
}

// all returns the counts by Reason.
func (c Counts) all() [Reasons]uint64 {
	return [Reasons]uint64{c.ConnectionRate, c.MaxConnections, c.Peers, c.Overload, c.MaxHeaderBytes}
}

// counts is the inverse of all.
func counts(n [Reasons]uint64) Counts {
	return Counts{n[ConnectionRate], n[MaxConnections], n[Peers], n[Overload], n[MaxHeaderBytes]}
}

// Each calls f with each reason.
func (c Counts) Each(f func(reason string, n uint64)) {
	for r, n := range c.all() {
		f(names[r], n)
	}
}

// A Log has the connections that one listener resets. It is safe for concurrent use; make one with [New].
type Log struct {
	logger   *slog.Logger
	listener string
	settings [Reasons]string // the field of the configuration
	counts   [Reasons]atomic.Uint64
	lines    [Reasons]*loglimit.Rate // at most one per second of each reason, so that one does not hide another
}

// New returns the Log of the HTTP or MongoDB listener with this name.
func New(logger *slog.Logger, listener string, mongo bool) *Log {
	l := &Log{logger: logger, listener: listener, settings: settingsOf(listener, mongo)}
	for i := range l.lines {
		l.lines[i], _ = loglimit.NewRate(1) // it is in range
	}
	return l
}

// settingsOf returns the fields of the configuration that connections of a listener are reset for.
func settingsOf(listener string, mongo bool) [Reasons]string {
	listener = decisions.Clean(listener)
	if at := "mongo[" + listener + "]."; mongo {
		return [Reasons]string{at + "parameters.ingressConnectionEstablishmentRatePerSec", at + "max_connections"}
	}
	at := "listeners[" + listener + "]."
	return [Reasons]string{at + "connection_rate", at + "max_connections", at + "peers", "mode", at + "max_header_bytes"}
}

var byLimit = [...]Reason{
	connlimit.LimitRate: ConnectionRate, connlimit.LimitOpen: MaxConnections, connlimit.LimitOverload: Overload, connlimit.LimitHeads: MaxHeaderBytes,
}

// Rejected counts a connection that [connlimit.Listener] resets: it is for ListenerConfig.Rejected.
func (l *Log) Rejected(client net.Addr, limit connlimit.Limit) {
	l.count(client, byLimit[limit])
}

// NoPeer resets a connection from an address that is not in the networks of peers.
func (l *Log) NoPeer(c net.Conn) {
	l.count(c.RemoteAddr(), Peers)
	netconn.Reset(c)
}

// count counts a connection, and writes its line if one is due.
func (l *Log) count(client net.Addr, why Reason) {
	l.counts[why].Add(1)
	if !l.lines[why].Admit(time.Now()) {
		return
	}
	address := ""
	if tcp, ok := client.(*net.TCPAddr); ok {
		address = decisions.Network(tcp.AddrPort().Addr())
	}
	l.logger.Warn("connection reset", "listener", l.listener, "client", address, "reason", why.String(), "do", advice[why],
		"settings", l.settings[why], "runbook", runbook.URL+"#connections-are-reset", "left_out", l.lines[why].Reset())
}

// Counts returns how many connections were reset so far.
func (l *Log) Counts() Counts {
	var n [Reasons]uint64
	for r := range n {
		n[r] = l.counts[r].Load()
	}
	return counts(n)
}

// noticed is the rate of resets per second from which they are a notice. It is that of the alert in deploy/alerts.yaml.
const noticed = 1

// Minus returns how many connections were reset since there were d. A listener that was started
// again counts from 0.
func (c Counts) Minus(d Counts) Counts {
	a, b := c.all(), d.all()
	for r := range a {
		if a[r] < b[r] {
			return c
		}
		a[r] -= b[r]
	}
	return counts(a)
}

// Notice returns a sentence about the connections that a listener has reset in some seconds, and why and
// what to do. It reports false if they are few.
func (c Counts) Notice(listener string, mongo bool, seconds float64) (headline, text string, ok bool) {
	total := c.Total()
	if total == 0 || float64(total) < noticed*seconds {
		return "", "", false
	}
	most, settings := Reason(0), settingsOf(listener, mongo)
	counts := c.all()
	for r, n := range counts {
		if n > counts[most] {
			most = Reason(r)
		}
	}
	why, share := settings[most], ""
	if most == Overload {
		why = most.String() // no setting asks for it
	}
	if counts[most] < total {
		share = fmt.Sprintf(" (%s of them)", human.Percent(float64(counts[most])/float64(total)))
	}
	headline = fmt.Sprintf("Listener %s resets connections: %s.", decisions.Clean(listener), human.PerSecond(float64(total)/seconds))
	text = fmt.Sprintf("The reason is %s%s. %s Clients get no answer; the lines \"connection reset\" of the log have their addresses.",
		why, share, advice[most])
	return headline, text, true
}
