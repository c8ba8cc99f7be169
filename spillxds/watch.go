package spillxds

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
)

// maxDetail bounds what a NACK says.
const maxDetail = 2000

// errIdle ends a stream on which nothing is subscribed to any more.
var errIdle = errors.New("spillxds: no subscription is left")

// watch keeps a stream open while there is something to subscribe to.
func (c *Client) watch(ctx context.Context) {
	var nacks damper
	retrying(ctx, c.config.backoff(), func(ctx context.Context) bool {
		for {
			c.subscribed(ctx)
			worked, err := c.session(ctx, &nacks)
			if !errors.Is(err, errIdle) {
				return worked
			}
		}
	})
}

// subscribed waits until there is something to subscribe to, or ctx ends.
func (c *Client) subscribed(ctx context.Context) {
	for len(c.table.names()) == 0 && !c.config.Wildcard {
		select {
		case <-c.table.changed:
		case <-ctx.Done():
			return
		}
	}
}

// session is one stream, from its first request to its end. It reports whether
// the stream worked: a response was received.
func (c *Client) session(ctx context.Context, nacks *damper) (worked bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { c.lost(Disconnected, err) }()
	defer c.recovered(&err)
	c.connected(ctx, Disconnected)
	st, err := open(ctx, c.conn, c.config.Incremental)
	if err != nil {
		return false, err
	}
	c.count(func(s *Stats) { s.StreamsTotal++; s.Connected = true })
	defer func() {
		c.table.streamEnded()
		c.count(func(s *Stats) { s.Connected = false })
	}()
	c.tell(Event{Kind: Connected})
	answers := make(chan *answer)
	ended := make(chan error, 1)
	c.running.Go(func() { ended <- c.receive(ctx, st, answers) })
	s := &session{Client: c, stream: st, nacks: nacks, node: c.node, sent: map[string]bool{}}
	err = s.run(ctx, answers, ended)
	return s.worked, err
}

// lost tells that a stream has ended, or could not be opened.
func (c *Client) lost(kind Kind, err error) {
	if err != nil && c.ctx.Err() == nil {
		c.tell(Event{Kind: kind, Err: err})
	}
}

// receive passes answers on until the stream ends.
func (c *Client) receive(ctx context.Context, st stream, answers chan<- *answer) (err error) {
	defer c.recovered(&err)
	for {
		a, err := st.recv()
		if err != nil {
			return err
		}
		select {
		case answers <- a:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// session is the state of one stream.
type session struct {
	*Client

	stream  stream
	nacks   *damper
	node    *corev3.Node    // nil once it was sent
	sent    map[string]bool // names subscribed to
	nonce   string          // of the last response
	pending *statuspb.Status
	due     time.Time // when to send the NACK that is pending; zero: none is
	worked  bool

	answered bool // since more was subscribed to
}

// run is the loop of the stream.
func (s *session) run(ctx context.Context, answers <-chan *answer, ended <-chan error) error {
	if err := s.say(""); err != nil {
		return err
	}
	for {
		timer := s.timer()
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case err = <-ended:
		case a := <-answers:
			err = s.answer(a)
		case <-s.table.changed:
			err = s.resubscribe()
		case <-timer.C:
			err = s.tick()
		}
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// timer returns one for whatever is due next.
func (s *session) timer() *time.Timer {
	told, next := s.table.overdue(time.Now(), s.whyMissing())
	s.tell(told...)
	if !s.due.IsZero() && (next.IsZero() || s.due.Before(next)) {
		next = s.due
	}
	if next.IsZero() {
		return time.NewTimer(time.Hour)
	}
	return time.NewTimer(time.Until(next))
}

// whyMissing returns why a cluster is missing that has not come in time.
func (s *session) whyMissing() error {
	if !s.answered && !s.config.Incremental && !s.config.Wildcard {
		return errSilent
	}
	return ErrNotFound
}

// tick sends the NACK that is pending, if it is due. What else may be due the
// next timer sees to.
func (s *session) tick() error {
	if s.due.IsZero() || time.Now().Before(s.due) {
		return nil
	}
	return s.say(s.nonce)
}

// answer puts what a says in force, and accepts or rejects it. A NACK that is
// still pending for the response before is not sent any more.
func (s *session) answer(a *answer) error {
	s.worked, s.answered = true, true
	if a.typeURL != clusterType {
		s.count(func(s *Stats) { s.IgnoredTotal++ })
		return nil
	}
	told, errs := s.table.apply(a)
	s.tell(told...)
	s.nonce, s.pending, s.due = a.nonce, nil, time.Time{}
	if len(errs) == 0 {
		s.nacks.acked()
		s.count(func(s *Stats) { s.AcceptedTotal++ })
		return s.say(s.nonce)
	}
	s.pending = rejection(errs)
	s.count(func(s *Stats) { s.RejectedTotal++ })
	s.tell(Event{Kind: Rejected, Err: errors.New(s.pending.GetMessage())})
	now := time.Now()
	if s.due = s.nacks.due(now); s.due.After(now) {
		return nil
	}
	return s.say(s.nonce)
}

// resubscribe says what is wanted now. With a NACK pending it is that which says
// so: without it, the server would take the request for an ACK.
func (s *session) resubscribe() error {
	names := s.table.names()
	switch {
	case len(names) == 0 && !s.config.Wildcard:
		return errIdle
	case s.subscribedTo(names):
		s.await() // a wildcard has asked for whatever was taken meanwhile
		return nil
	}
	if s.config.Incremental && s.pending == nil {
		return s.say("") // a nonce would make it an ACK
	}
	return s.say(s.nonce)
}

// say sends a request: the first of the stream, an ACK, a NACK if one is
// pending, a change of subscriptions, or several of these at once.
func (s *session) say(nonce string) error {
	r := &request{
		node: s.node, names: s.table.subscribe(), version: s.table.acceptedVersion(),
		nonce: nonce, err: s.pending,
	}
	if s.node != nil {
		r.version, r.versions = s.table.heldVersion(), s.table.accepted()
	}
	r.subscribe, r.unsubscribe = s.difference(r.names)
	s.answered = s.answered && len(r.subscribe) == 0
	if s.pending != nil {
		s.nacks.nacked(time.Now())
		s.count(func(s *Stats) { s.NACKsTotal++ })
	}
	s.node, s.pending, s.due = nil, nil, time.Time{}
	if err := s.stream.send(r); err != nil {
		return err
	}
	s.await()
	return nil
}

// await starts the time within which clusters must come.
func (s *session) await() {
	if within := s.config.DoesNotExist; within > 0 {
		s.table.await(time.Now(), within)
	}
}

func (s *session) subscribedTo(names []string) bool {
	return len(names) == len(s.sent) && !slices.ContainsFunc(names, func(name string) bool { return !s.sent[name] })
}

// difference returns what names has beyond what was subscribed to, and the
// reverse, and takes note of it.
func (s *session) difference(names []string) (more, fewer []string) {
	old := maps.Clone(s.sent)
	for _, name := range names {
		if !old[name] {
			more = append(more, name)
			s.sent[name] = true
		}
		delete(old, name)
	}
	for name := range old {
		fewer = append(fewer, name)
		delete(s.sent, name)
	}
	return more, fewer
}

// rejection is the detail of a NACK. It names resources and fields, no values.
func rejection(errs []error) *statuspb.Status {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	text := strings.ToValidUTF8(strings.Join(all, "; "), "?")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return &statuspb.Status{Code: int32(codes.InvalidArgument), Message: text}
}
