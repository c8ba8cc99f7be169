package mongoproxy

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// greet forwards a hello and its answer, or its answers if the server streams them.
func (c *conn) greet(f wire.Frame, cmd *wire.Command) error {
	if !c.greeted {
		c.greeted = true
		c.client = wire.NewHandshake(cmd.Doc)
		c.identify()
	}
	m := wire.Mask{Hide: c.settings.config.Topology != "pass"}
	if c.client.Balanced {
		m.Service = c.place.ID
	}
	speculative := mongowire.Lookup(cmd.Doc, "speculativeAuthenticate").Document()
	c.claim(speculative)
	if err := c.down.Forward(f, c.up); err != nil {
		return err
	}
	c.streams.Store(true) // it may take as long as the client likes
	defer c.streams.Store(false)
	for first, more := true, true; more; first = false {
		r, err := c.answer(f.RequestID, !first)
		if err != nil {
			return err
		}
		if more, err = c.greetBack(r, m, speculative != nil); err != nil {
			return err
		}
	}
	return nil
}

// greetBack sends one answer to a hello, and reports whether another follows.
func (c *conn) greetBack(r wire.Frame, m wire.Mask, speculative bool) (more bool, err error) {
	doc, flags, ok := wire.Document(r)
	if !ok {
		return false, endAs(Broken, "an answer to a hello that cannot be read")
	}
	if speculative {
		c.proven(mongowire.Lookup(doc, "speculativeAuthenticate").Document())
	}
	seen := m.Apply(doc)
	c.up.Pass(r)
	err = c.reply(r.OpCode == mongowire.OpReply, r.RequestID, r.ResponseTo, flags&^mongowire.ChecksumPresent, seen)
	return flags&mongowire.MoreToCome != 0, err
}

// introduce handles a hello, or a command that authenticates. No gate rejects it.
func (c *conn) introduce(f wire.Frame, cmd *wire.Command) error {
	if err := c.guard(f, cmd); err != nil {
		return err
	}
	c.listener.counts.commands.Add(1)
	c.listener.counts.exempt.Add(1)
	if c.borrowsProof(cmd) {
		c.down.Pass(f)
		return c.reply(cmd.Legacy, 0, f.RequestID, 0, borrowed)
	}
	if err := c.reach(); err != nil {
		return err
	}
	if cmd.Kind == wire.Greeting {
		return c.greet(f, cmd)
	}
	return c.prove(f, cmd)
}
