package spillhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillhttp/internal/early"
)

// An earlyGate is a [Handler] as the gate of its [Listener], which decides on requests of which
// only the head has arrived.
type earlyGate Handler

// Looks implements [early.Gate].
func (g *earlyGate) Looks() bool { return g.looks.Load() > 0 }

// Now implements [early.Gate].
func (g *earlyGate) Now() time.Time { return g.clock.Now() }

// Decide implements [early.Gate]. A request that passes gets a note with its level, for the
// decision of the Handler. If the Handler drew a second level, the request would have to pass with
// two levels. If code of the user panics, such as Classify, the request passes, and the Handler
// panics with the same value, so that a middleware can recover.
func (g *earlyGate) Decide(now time.Time, c *early.Conn, x *early.Head) (answer []byte) {
	defer g.panicked.Keep()
	h, m := (*Handler)(g), memoOf(x)
	var a arrival
	peer, addr := c.Peer()
	a.Caller = ratelimit.Caller{Addr: addr}
	if !h.judgeHead(now, x, m, peer, &a) || x.BodyWanted() {
		return nil
	}
	ctx := context.Background()
	if m.told.Request != nil {
		ctx = m.context
	}
	why := h.early(ctx, now, &a)
	if !why.Rejected() {
		c.SetNote(uint32(a.Call.Level))
		return nil
	}
	return m.rejection(&why, h.wordingOf(&why), x.Method())
}

// judgeHead fills in a from the head of a request. It returns false if the request bypasses the
// Handler or its head cannot be read. If no func of the HandlerConfig is set (plain), the path and
// the claims are enough for most requests.
func (h *Handler) judgeHead(now time.Time, x *early.Head, m *memo, peer string, a *arrival) bool {
	trust := h.ingress.Trust()
	m.told = claims.Head{}
	var identity string
	if path, plain := x.Path(); h.plain && plain && !x.Repeats() {
		if h.isHealth(path, trust) {
			return false
		}
	} else {
		r, ok := x.Request(peer)
		if !ok || h.unseen(r) {
			return false
		}
		m.told = claims.Head{Request: r, BodyLength: h.bodyLength}
		if x.Repeats() {
			h.judge(now, r, a)
			return true
		}
		h.recognize(r, a)
		identity = h.identity(r)
	}
	said := *m.claimed(x)
	said.Identity = identity
	if !a.CountsAttempts(trust) {
		said.Attempt = 0
	}
	a.Believe(now, trust, &said)
	return true
}

// drawnEarly returns the level that Decide has noted for the request of ctx, or 0.
func drawnEarly(ctx context.Context) spillway.Level { return spillway.Level(early.TakeNote(ctx)) }

// A memo is what the gate keeps in a Head from one request of a connection to the next.
type memo struct {
	told    claims.Head     // what observers receive; they may set the ID of the answer
	context context.Context //nolint:containedctx // with told as a value, for events of rejections: made once for a connection
	answer  []byte

	version uint64 // version of the Head that the fields below belong to
	said    claimFields
	texts   [claimKinds]string
	claims  ingress.Claims // the claims in said
}

// memoOf returns the memo of a Head.
func memoOf(x *early.Head) *memo {
	m, ok := x.Memo.(*memo)
	if !ok {
		m = new(memo)
		m.context = context.WithValue(context.Background(), claims.HeadKey{}, &m.told)
		x.Memo = m
	}
	return m
}

// claimed returns the claims of a request in which no header is repeated. The result must not be
// changed.
func (m *memo) claimed(x *early.Head) *ingress.Claims {
	if m.version == x.Version() {
		return &m.claims
	}
	m.version, m.said = x.Version(), claimFields{}
	for i := range m.said {
		if value, ok := x.Field(i); ok && i != claimTrace {
			m.texts[i] = textOf(value, m.texts[i])
			m.said[i] = m.texts[i : i+1]
		}
	}
	if !x.Post() {
		m.said[claimGRPCTimeout], m.said[claimGRPCAttempts] = nil, nil
	}
	m.claims = ingress.Claims{}
	m.said.read(&m.claims)
	if trace, ok := x.Field(claimTrace); ok && m.claims.Level == 0 {
		m.claims.TraceLevel = claims.TraceLevelOf(trace)
	}
	return &m.claims
}

// textOf returns b as a string, or a string with the same meaning. It allocates only if b is not
// before, the value of the last request, and is no class, level or progress.
func textOf(b []byte, before string) string {
	if string(b) == before {
		return before
	}
	for c := spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
		if string(b) == c.String() {
			return c.String()
		}
	}
	if n, ok := claims.Number(b, 255); ok && n > 0 {
		return claims.ProgressValues[n][0]
	}
	return string(b)
}

// rejection returns the complete answer of HTTP/1.1 to a rejected request with this method. It has
// the headers of answerTo. Only the Date is missing, which is optional in such an answer.
func (m *memo) rejection(why *ingress.Rejection, text *wording, method []byte) []byte {
	b := m.answer[:0]
	switch {
	case why.Outcome == spillway.OutcomeOverQuota:
		b = appendAll(b, overQuota, text.fields, quotaUsed, seconds(why.RetryAfter), crlf)
	case why.DontRetry:
		b = appendAll(b, overloaded, text.fields, headerScope+": service\r\n"+headerShouldRetry+": false\r\n")
	default:
		b = appendAll(b, overloaded, text.fields, headerScope+": task\r\n")
	}
	if why.Outcome == spillway.OutcomeOverQuota || !why.DontRetry {
		b = appendAll(b, headerRetryAfter+": ", seconds(why.RetryAfter), crlf+headerRetryAfterMs+": ", milliseconds(why.RetryAfter), crlf)
	}
	if why.AcceptRatio != "" {
		b = appendAll(b, headerAcceptRatio+": ", why.AcceptRatio, crlf)
	}
	if id := m.told.ID; id != "" {
		b = appendAll(b, headerRequestID+": ", id, crlf)
	}
	b = append(b, crlf...)
	if string(method) != http.MethodHead {
		b = append(b, text.body...)
	}
	m.answer = b
	return b
}

const (
	crlf       = "\r\n"
	overloaded = "HTTP/1.1 503 Service Unavailable\r\n" + headerOverloaded + ": true\r\n"
	overQuota  = "HTTP/1.1 429 Too Many Requests\r\n" + headerScope + ": customer\r\n" + headerRateLimited + ": true\r\n"
	quotaUsed  = headerRateLimit + `: "quota";r=0;t=`
)

func appendAll(b []byte, parts ...string) []byte {
	for _, part := range parts {
		b = append(b, part...)
	}
	return b
}
