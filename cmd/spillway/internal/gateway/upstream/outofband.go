package upstream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"connectrpc.com/connect"
	orcadata "github.com/cncf/xds/go/xds/data/orca/v3"
	orcapb "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// outOfBand receives load reports from the endpoints of a cluster over streams of
// xds.service.orca.v3.OpenRcaService (gRFC A51). Each endpoint costs a goroutine and an HTTP/2
// stream. An endpoint without the service is not asked again.
type outOfBand struct {
	endpoints *endpoints
	every     time.Duration
}

// The waits between streams, as gRPC has them between connections.
const (
	firstStreamWait = time.Second
	maxStreamWait   = 2 * time.Minute
)

var errUnimplemented = errors.New("the endpoint has no service for load reports")

// follow is a [watch].
func (o *outOfBand) follow(ctx context.Context, logger *slog.Logger, x *endpoint) {
	wait := firstStreamWait
	for {
		received, err := o.stream(ctx, x)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errUnimplemented):
			logger.Warn("no load reports out of band", "error", err)
			return
		case received:
			wait = firstStreamWait
		}
		logger.Debug("a stream of load reports has ended", "error", err)
		if !lasts(ctx, jittered(wait, 0.2)) {
			return
		}
		wait = min(wait*8/5, maxStreamWait)
	}
}

// lasts waits for d, and reports whether ctx has not ended.
func lasts(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// stream reads reports until the stream ends, and returns whether there was one.
func (o *outOfBand) stream(ctx context.Context, x *endpoint) (received bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which ends the stream
	e := o.endpoints
	service := e.scheme + "://" + x.address + orcapb.OpenRcaService_StreamCoreMetrics_FullMethodName
	c, client := newCall[orcapb.OrcaLoadReportRequest, orcadata.OrcaLoadReport](cmp.Or(e.second, e.plain), service)
	stream, err := client.CallServerStream(ctx, connect.NewRequest(&orcapb.OrcaLoadReportRequest{ReportInterval: durationpb.New(o.every)}))
	if err != nil {
		return false, err
	}
	defer func() { _ = stream.Close() }() // it has ended, or the reader is gone
	for stream.Receive() {
		received, c.left = true, maxMessage
		now := time.Now()
		if e.set.Wants(now, x.Endpoint) {
			e.take(now, x, message.LoadReportOf(stream.Msg()))
		}
		// An endpoint that sends more often than requested is slowed down by flow control.
		if !lasts(ctx, min(o.every/2, time.Second)) {
			return received, ctx.Err()
		}
	}
	if connect.CodeOf(stream.Err()) == connect.CodeUnimplemented {
		return received, errUnimplemented
	}
	return received, bad(stream.Err())
}
