package connlimit

import (
	"io"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/claims"
)

const (
	// headRate is the number of bytes of heads without a request that an address may send per
	// second, and headBurst the number that it may send at once. net/http parses a head at 5 to 20
	// MB per second if its lines are short: one address uses 1 % of a processor at most.
	headRate, headBurst = 64 << 10, 256 << 10
	// headsRead is the maximum number of bytes of unfinished long heads of an address, of which it
	// is not known yet whether they become requests.
	headsRead = 4 << 20
	// headFields is the maximum number of header lines of a request whose long head is not charged.
	// Envoy, Apache httpd and HAProxy accept a tenth of that.
	headFields = 1000
	// headAccounts is the maximum number of addresses with debts.
	headAccounts = 4096
)

// noHead is the value of conn.free while no head is being read. It is above any number of free
// bytes.
const noHead = math.MaxInt64 / 2

// heads has the accounts of the addresses that send long heads. It is safe for concurrent use.
type heads struct {
	mu  sync.Mutex
	all map[netip.Prefix]*account
}

// An account has the bytes of long heads that an address has sent, without the free part of each
// head.
type account struct {
	network netip.Prefix
	reading int     // bytes of heads that have not ended
	debt    float64 // bytes of heads that became no request, less those paid off until at
	at      time.Time
}

// HeadBegins says that a head begins, and that the request before it was answered. free is the
// number of bytes that are not charged.
func (c *conn) HeadBegins(free int) {
	c.end(false)
	c.free.Store(int64(free))
}

// HeadRead says that the head has been read. Whether it becomes a request is not known yet.
func (c *conn) HeadRead() { c.free.Store(noHead) }

// HeadEnds says that the head has become a request with these fields.
func (c *conn) HeadEnds(fields map[string][]string) {
	c.free.Store(noHead)
	if c.charged.Load() {
		c.end(tooMany(fields))
	}
}

// end ends the current head of c. owed says that its address is charged for it: it has become no
// request, or a request with too many fields.
func (c *conn) end(owed bool) {
	if c.charged.Load() {
		c.listener.heads.end(c, owed)
	}
}

func tooMany(fields map[string][]string) bool {
	n := 0
	for _, lines := range fields {
		n += len(lines)
	}
	return n > headFields
}

// Read reads from the connection. It resets the connection in the middle of a long head if its
// address has sent too many bytes of long heads.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Conn.Read(p)
	if n <= 0 || c.free.Load() > noHead/2 {
		return n, err
	}
	if left := c.free.Add(-int64(n)); left < 0 && !c.listener.heads.take(c, int(min(int64(n), -left))) {
		c.reject(LimitHeads)
		return 0, io.EOF // net/http answers most other errors
	}
	return n, err
}

// take counts n bytes of a long head of c, and reports whether the connection may go on.
func (h *heads) take(c *conn, n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := c.account
	if a == nil {
		a = h.find(claims.Network(address(c)))
		c.account = a
		c.charged.Store(true)
	}
	c.long += n
	a.reading += n
	return a.reading <= headsRead && a.owes(time.Now()) <= headBurst
}

// end moves the bytes of the current head of c to the debt if they are owed, and forgets them
// otherwise.
func (h *heads) end(c *conn, owed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, now := c.account, time.Now()
	if a == nil {
		return
	}
	a.reading -= c.long
	if a.owes(now); owed {
		a.debt = min(a.debt+float64(c.long), 2*headBurst)
	}
	c.account, c.long = nil, 0
	c.charged.Store(false)
	if a.reading == 0 && a.debt == 0 && h.all[a.network] == a {
		delete(h.all, a.network)
	}
}

// find returns the account of an address. If there are headAccounts with debts, a new account is
// not added to the table, so its debt is forgotten when the head ends.
func (h *heads) find(network netip.Prefix) *account {
	if a := h.all[network]; a != nil {
		return a
	}
	now := time.Now()
	a := &account{network: network, at: now}
	if len(h.all) >= headAccounts {
		for network, old := range h.all {
			if old.owes(now) == 0 && old.reading == 0 {
				delete(h.all, network)
			}
		}
	}
	if len(h.all) < headAccounts {
		if h.all == nil {
			h.all = make(map[netip.Prefix]*account)
		}
		h.all[network] = a
	}
	return a
}

// owes returns the debt at the time now.
func (a *account) owes(now time.Time) float64 {
	a.debt = max(0, a.debt-headRate*max(0, now.Sub(a.at).Seconds()))
	a.at = now
	return a.debt
}
