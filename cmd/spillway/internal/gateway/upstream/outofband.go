package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	orcapb "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/orca"
)

// outOfBand receives load reports from the endpoints of a cluster over streams of
// xds.service.orca.v3.OpenRcaService (gRFC A51). Each endpoint costs a goroutine and an HTTP/2
// stream. An endpoint without the service is not asked again.
type outOfBand struct {
	watch
	every time.Duration
}

// A watch has a goroutine for each endpoint of a cluster.
type watch struct {
	cluster   string
	endpoints *endpoints
	logger    *slog.Logger // after start
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// start starts the goroutines, which must return when their context ends.
func (w *watch) start(ctx context.Context, logger *slog.Logger, follow func(context.Context, *endpoint)) {
	w.logger = logger
	ctx, w.cancel = context.WithCancel(ctx)
	for _, x := range w.endpoints.all {
		w.running.Go(func() { follow(ctx, x) })
	}
}

// stop waits until all goroutines have returned.
func (w *watch) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.running.Wait()
}

// The waits between streams, as gRPC has them between connections.
const (
	firstStreamWait = time.Second
	maxStreamWait   = 2 * time.Minute
)

var errUnimplemented = errors.New("the endpoint has no service for load reports")

func (o *outOfBand) follow(ctx context.Context, x *endpoint) {
	wait := firstStreamWait
	for {
		received, err := o.stream(ctx, x)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errUnimplemented):
			o.logger.Warn("no load reports out of band", "cluster", o.cluster, "endpoint", x.address, "error", err)
			return
		case received:
			wait = firstStreamWait
		}
		o.logger.Debug("a stream of load reports has ended", "cluster", o.cluster, "endpoint", x.address, "error", err)
		if !lasts(ctx, jittered(wait, 0.2)) {
			return
		}
		wait = min(wait*8/5, maxStreamWait)
	}
}

// lasts waits for d, and reports whether ctx has not ended.
func lasts(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
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
	message, err := frame(&orcapb.OrcaLoadReportRequest{ReportInterval: durationpb.New(o.every)})
	if err != nil {
		return false, err
	}
	service := e.scheme + "://" + x.address + orcapb.OpenRcaService_StreamCoreMetrics_FullMethodName
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, service, bytes.NewReader(message))
	if err != nil {
		return false, err
	}
	r.Header = headOfCall()
	t := e.plain
	if e.second != nil {
		t = e.second
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if code := resp.Header.Get("Grpc-Status"); code == "12" || resp.StatusCode == http.StatusNotFound {
		return false, errUnimplemented
	} else if resp.StatusCode != http.StatusOK || code != "" {
		return false, fmt.Errorf("answered %d, status %.32q of gRPC", resp.StatusCode, code)
	}
	for {
		message, err := readMessage(resp.Body)
		if err != nil {
			if resp.Trailer.Get("Grpc-Status") == "12" {
				err = errUnimplemented
			}
			return received, err
		}
		received = true
		if l, ok := orca.Decode(message); ok {
			now := time.Now()
			if e.set.Wants(now, x.Endpoint) {
				e.take(now, x, l)
			}
		}
		// An endpoint that sends more often than requested is slowed down by flow control.
		if !lasts(ctx, min(o.every/2, time.Second)) {
			return received, ctx.Err()
		}
	}
}
