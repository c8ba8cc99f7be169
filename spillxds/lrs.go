package spillxds

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/proto"
)

// errFlushed ends a stream after the last report.
var errFlushed = errors.New("spillxds: closed")

// report keeps a stream of load reports open while the Client is open, from the
// first report on.
func (c *Client) report(ctx context.Context) {
	if !c.reporting(ctx) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	retrying(ctx, c.config.backoff(), func(ctx context.Context) bool {
		worked, err := c.reportOn(ctx)
		if errors.Is(err, errFlushed) {
			cancel()
			return worked
		}
		c.count(func(s *Stats) { s.Interval = 0 })
		c.lost(ReportingStopped, err)
		return worked
	})
}

// reporting waits until a cluster is to be reported on, or the Client is closed.
func (c *Client) reporting(ctx context.Context) bool {
	select {
	case <-c.table.wanted:
		return true
	case <-c.closing:
	case <-ctx.Done():
	}
	return false
}

// reportOn is one stream. It reports whether the stream worked.
func (c *Client) reportOn(ctx context.Context) (worked bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.recovered(&err)
	c.connected(ctx, ReportingStopped)
	st, err := lrsv3.NewLoadReportingServiceClient(c.conn).StreamLoadStats(ctx)
	if err != nil {
		return false, err
	}
	node, _ := proto.Clone(c.node).(*corev3.Node)
	node.ClientFeatures = append(slices.Clone(node.GetClientFeatures()), "envoy.lrs.supports_send_all_clusters")
	if err := st.Send(&lrsv3.LoadStatsRequest{Node: node}); err != nil {
		return false, err
	}
	wishes := make(chan wish)
	ended := make(chan error, 1)
	c.running.Go(func() { ended <- c.wishes(ctx, st, wishes) })
	r := reporter{Client: c, stream: st, ended: ended}
	return r.run(ctx, wishes)
}

// wishes passes on what the server asks for, until the stream ends.
func (c *Client) wishes(ctx context.Context, st lrsv3.LoadReportingService_StreamLoadStatsClient, to chan<- wish) (err error) {
	defer c.recovered(&err)
	for {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		select {
		case to <- wishOf(m, c.config.MinReportInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reporter is the state of one stream.
type reporter struct {
	*Client

	stream lrsv3.LoadReportingService_StreamLoadStatsClient
	ended  <-chan error
	wish   wish
	asked  bool // the server has said what it wants
	last   time.Time
}

// run is the loop of the stream. Nothing is sent before the server has said what
// it asks for. A change of the interval counts from the last report on.
func (r *reporter) run(ctx context.Context, wishes <-chan wish) (worked bool, err error) {
	r.last = time.Now()
	timer := time.NewTimer(maxReportInterval)
	defer timer.Stop()
	closing := r.closing
	for {
		select {
		case err := <-r.ended:
			return r.asked, err
		case <-ctx.Done():
			return r.asked, ctx.Err()
		case <-closing:
			if !r.asked && r.table.unreported() > 0 {
				closing = nil // until the server has said what it wants, or time is up
				continue
			}
			return r.asked, r.flush(ctx, wishes)
		case w := <-wishes:
			r.take(w)
			closing = r.closing
		case <-timer.C:
			if err := r.send(); err != nil {
				return r.asked, err
			}
		}
		timer.Reset(r.wait())
	}
}

func (r *reporter) take(w wish) {
	r.wish, r.asked = w, true
	r.count(func(s *Stats) { s.Interval = w.interval })
	r.tell(Event{Kind: Reporting, Interval: w.interval})
}

// wait returns how long it is until the next report.
func (r *reporter) wait() time.Duration {
	if !r.asked {
		return maxReportInterval
	}
	return max(r.wish.interval-time.Since(r.last), 0)
}

// send sends a report. What could not be sent is put back: not even begun on a
// stream that has ended, or code of the user has panicked.
func (r *reporter) send() error {
	if !r.asked {
		return nil
	}
	r.last = time.Now()
	d, sent := r.table.draft(r.last, &r.wish), false
	defer func() {
		if !sent {
			d.putBack()
			r.count(func(s *Stats) { s.LostReportsTotal++ })
		}
	}()
	if err := r.stream.Send(d.request); err != nil {
		return err
	}
	sent = true
	d.settle()
	r.count(func(s *Stats) { s.ReportsTotal++ })
	return nil
}

// flush sends the last report and waits until the server has read it: a server
// ends the stream when the client has. If it cannot be sent, the next stream is to.
func (r *reporter) flush(ctx context.Context, wishes <-chan wish) error {
	if err := r.send(); err != nil {
		return err
	}
	_ = r.stream.CloseSend() // which never fails
	for {
		select {
		case <-wishes: // too late
		case err := <-r.ended:
			if !errors.Is(err, io.EOF) {
				r.tell(Event{Kind: ReportingStopped, Err: err})
			}
			return errFlushed
		case <-ctx.Done():
			return errFlushed
		}
	}
}
