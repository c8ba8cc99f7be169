package mongoproxy

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// An identity is the state of the authentication of a connection.
type identity struct {
	user    string // who has been accepted; may be unknown
	proven  bool   // somebody has been, and stays so until the connection ends
	claimed string // who the client says to be, until the server accepts
}

// claim records the user that a client names in a saslStart or an authenticate.
func (c *conn) claim(doc []byte) {
	if doc != nil {
		c.who.claimed = wire.Claimant(doc)
	}
}

// proven records the server's answer to an authentication; nil if it has failed. A failure
// does not log out a user who was accepted before: the server keeps that user, too, and a
// client must not bypass the gates by it.
func (c *conn) proven(doc []byte) {
	done := mongowire.Lookup(doc, "done")
	switch {
	case doc == nil:
		c.who.claimed = ""
	case done.Kind == 0 || done.True(): // X.509 needs one message, whose answer has no done
		c.who = identity{user: c.who.claimed, proven: true}
		c.identify()
	}
}

// prove forwards a command that authenticates, and its answer.
func (c *conn) prove(f wire.Frame, cmd *wire.Command) error {
	command := string(cmd.Name)
	if command == "saslStart" || command == "authenticate" {
		c.claim(cmd.Doc)
	}
	if err := c.down.Forward(f, c.up); err != nil {
		return err
	}
	r, err := c.answer(f.RequestID, false)
	if err != nil {
		return err
	}
	doc, _, ok := wire.Document(r)
	switch {
	case !ok:
		return endAs(Broken, "an answer to an authentication that cannot be read")
	case !mongowire.Lookup(doc, "ok").True():
		c.proven(nil)
	case command != "getnonce":
		c.proven(doc)
	}
	return c.up.Forward(r, c.down)
}
