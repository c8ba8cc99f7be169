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
	// headRate is the number of bytes per second of heads without a request that an address may send, and headBurst the number at once.
	// net/http parses a head at 5 to 20 MB per second if its lines are short: one address uses 1 % of a processor at most.
	headRate, headBurst = 64 << 10, 256 << 10
	// headsRead is how many bytes of long heads an address may have in flight. Whether these become requests is not known yet.
	headsRead = 4 << 20
	// headFields is the most lines of a head that its request pays for. Envoy, Apache httpd and HAProxy accept a tenth of that.
	headFields = 1000
	// headAccounts bounds the addresses with debts.
	headAccounts = 4096
)

// noHead is more than any number of bytes that are free: no head is being read.
const noHead = math.MaxInt64 / 2

// heads are the addresses that send long heads. It is safe for concurrent use.
type heads struct {
	mu  sync.Mutex
	all map[netip.Prefix]*account
}

// An account is what an address has sent of long heads, in bytes, without the part of each head that is free.
type account struct {
	network netip.Prefix
	reading int     // of heads that have not ended
	debt    float64 // of heads that became no request
	at      time.Time
}

// HeadBegins says that a head begins. free is the number of bytes that are not charged. The request before was answered.
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

// end ends the head of c, which is owed if it has become no request, or one with too many fields.
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

// Read resets the connection in the middle of a long head, if its address has sent too much of such heads.
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

// take counts n bytes of a long head of c, and reports whether it may go on.
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

// end takes in that a head of c has ended.
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

// find returns the account of an address. If too many have debts, that of a new one is not kept when the head has ended.
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
