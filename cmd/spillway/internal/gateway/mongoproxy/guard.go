package mongoproxy

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// The limits of a connection before it has authenticated, where the configuration says that
// the servers demand authentication. They are several times what SCRAM and the commands of a
// shell before it need.
const (
	// Also of the first message of every connection, which is a hello: the length of a
	// page. Commands that authenticate are shorter. Until the first message is complete, the
	// connection costs the server nothing, and the proxy a buffer of 1 KiB that grows with the
	// data that arrives.
	maxUnprovenMessage = wire.PageSize
	// Other than hello, which monitors repeat for ever.
	maxUnprovenCommands = 32
	// From the first command other than hello until the connection has authenticated.
	maxUnprovenTime = 30 * time.Second
	// Between two messages. Monitors send a hello every ten seconds.
	maxUnprovenIdle = 5 * time.Minute
)

var (
	errUnprovenLength = errors.New("a message of more than 16 KiB before authentication")
	errUnprovenLate   = errors.New("not authenticated 30 s after its first command")
)

// unproven has the number of commands and the deadline of a connection that has not
// authenticated.
type unproven struct {
	commands int
	until    time.Time // zero before the first command other than hello
}

func (c *conn) mustProve() bool { return c.settings.config.Authentication && !c.who.proven }

// longest returns the maximum length of the next message; 0 is the maximum of the protocol.
func (c *conn) longest() int {
	if c.mustProve() || !c.whole.Load() {
		return maxUnprovenMessage
	}
	return 0
}

// guard counts a command of a connection that has to authenticate.
func (c *conn) guard(f wire.Frame, cmd *wire.Command) error {
	if cmd.Name == nil && (c.mustProve() || c.ownsProof()) { // it may authenticate, and would not be noticed
		return endAs(Malformed, "a command before authentication whose name comes too late")
	}
	if !c.mustProve() {
		return nil
	}
	if f.OpCode == mongowire.OpCompressed {
		return endAs(Unauthenticated, "a compressed command before authentication")
	}
	if cmd.Kind == wire.Greeting {
		return nil
	}
	now := time.Now()
	if c.unproven.until.IsZero() {
		c.unproven.until = now.Add(maxUnprovenTime)
	}
	c.unproven.commands++
	switch {
	case c.unproven.commands > maxUnprovenCommands:
		return endAs(Unauthenticated, "more than 32 commands before authentication")
	case now.After(c.unproven.until):
		return because(Unauthenticated, errUnprovenLate)
	}
	return nil
}

// idle returns the maximum wait for the next message; zero or less is no limit.
func (c *conn) idle() time.Duration {
	t := c.settings.config.IdleTimeout
	if !c.mustProve() {
		return t
	}
	limit := maxUnprovenIdle
	if !c.unproven.until.IsZero() {
		limit = max(time.Until(c.unproven.until), time.Millisecond)
	}
	if t > 0 {
		limit = min(limit, t)
	}
	return limit
}

// ownsProof reports whether a client could authenticate with the certificate of the proxy,
// which is the one that the server sees. This is rejected unless the configuration allows it.
func (c *conn) ownsProof() bool {
	m := c.settings.config
	return m.UpstreamTLS != nil && m.UpstreamTLS.Certificate != "" && !m.SharedX509
}

// borrows reports whether a command, or the authentication in a hello, would authenticate by
// X.509. Both values of a duplicate field are checked, as it is unknown which one a server
// reads.
func borrows(doc []byte) bool {
	if name, _ := wire.First(doc); string(name) == "authenticate" && mongowire.Lookup(doc, "mechanism").Kind == 0 {
		return true // the mechanism that it is for
	}
	for key, v := range mongowire.Elements(doc) {
		if string(key) == "mechanism" && string(v.Text()) == "MONGODB-X509" {
			return true
		}
	}
	return false
}

// borrowsProof reports whether a command must be rejected, as it would authenticate with
// the certificate of the proxy.
func (c *conn) borrowsProof(cmd *wire.Command) bool {
	if !c.ownsProof() {
		return false
	}
	if cmd.Kind == wire.Proving {
		name := string(cmd.Name)
		return (name == "authenticate" || name == "saslStart") && borrows(cmd.Doc)
	}
	for key, v := range mongowire.Elements(cmd.Doc) {
		if inner := v.Document(); string(key) == "speculativeAuthenticate" && (inner == nil || borrows(inner)) {
			return true
		}
	}
	return false
}

// borrowed is the answer to such a command.
var borrowed = func() []byte {
	var b mongowire.Builder
	b.Double("ok", 0)
	b.Text("errmsg", "MONGODB-X509 is rejected by the proxy: the server would see the proxy's certificate, not the client's. "+
		"Use another mechanism, tls_passthrough, or set shared_x509 in the proxy's configuration.")
	b.Int("code", 18)
	b.Text("codeName", "AuthenticationFailed")
	return b.Document()
}()
