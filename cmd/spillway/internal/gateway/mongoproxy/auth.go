package mongoproxy

import (
	"bytes"
	"strings"

	"github.com/seed90641741/spillway/internal/mongowire"
)

// An identity is how far the authentication of a connection has come.
type identity struct {
	user    string // who has been accepted; may be unknown
	proven  bool   // somebody has been, and stays so until the connection ends
	claimed string // who the client says to be, until the server accepts
}

// claim takes note of who a client says to be, in the document of a saslStart or an
// authenticate.
func (c *conn) claim(doc []byte) {
	if doc != nil {
		c.who.claimed = claimant(doc)
	}
}

// claimant returns the user that the first message of an authentication names, where
// its mechanism says so: SCRAM, PLAIN, and X.509 where it is told.
func claimant(doc []byte) string {
	payload := mongowire.Lookup(doc, "payload").Binary()
	mechanism := mongowire.Lookup(doc, "mechanism").Text()
	var user []byte
	switch {
	case bytes.HasPrefix(mechanism, []byte("SCRAM-")):
		_, rest, _ := bytes.Cut(payload, []byte(",n=")) // after the GS2 header, n,,
		user, _, _ = bytes.Cut(rest, []byte{','})
	case string(mechanism) == "PLAIN":
		_, rest, _ := bytes.Cut(payload, []byte{0})
		user, _, _ = bytes.Cut(rest, []byte{0})
		return string(user[:min(len(user), maxName)])
	case string(mechanism) == "MONGODB-X509", mechanism == nil: // of the others no server reads the field
		return name(mongowire.Lookup(doc, "user"))
	}
	return strings.NewReplacer("=2C", ",", "=3D", "=").Replace(string(user[:min(len(user), maxName)]))
}

// proven takes note of an answer of the server to an authentication, nil if it has
// failed. That changes nothing for who was accepted before: so it is in the server, and
// a client must not get around the gates by it.
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

// prove passes on a command that authenticates, and its answer.
func (c *conn) prove(f frame, cmd *command) error {
	command := string(cmd.name)
	if command == "saslStart" || command == "authenticate" {
		c.claim(cmd.doc)
	}
	if err := c.down.forward(f, c.up); err != nil {
		return requestError(err)
	}
	r, err := c.answer(f.RequestID, false)
	if err != nil {
		return err
	}
	doc, _, ok := documentOf(r)
	switch {
	case !ok:
		return endAs(Broken, "an answer to an authentication that cannot be read")
	case !mongowire.Lookup(doc, "ok").True():
		c.proven(nil)
	case command != "getnonce":
		c.proven(doc)
	}
	return answerError(c.up.forward(r, c.down))
}
