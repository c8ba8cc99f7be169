package upstream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/orca"
)

// outOfBand receives load reports from the endpoints of a cluster over streams of
// xds.service.orca.v3.OpenRcaService (gRFC A51). Each endpoint costs a goroutine and an HTTP/2
// stream. An endpoint without the service is not asked again.
type outOfBand struct {
	endpoints *endpoints
	every     time.Duration
	cluster   string
	logger    *slog.Logger
	followers
}

// followers are goroutines, one for each endpoint. The zero value has none.
type followers struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// begin starts a goroutine for each endpoint, which must return when its context ends.
func (f *followers) begin(ctx context.Context, all []*endpoint, follow func(context.Context, *endpoint)) {
	ctx, f.cancel = context.WithCancel(ctx)
	for _, x := range all {
		f.running.Go(func() { follow(ctx, x) })
	}
}

// end waits until all have returned.
func (f *followers) end() {
	if f.cancel != nil {
		f.cancel()
	}
	f.running.Wait()
}

// start opens the streams to all endpoints, until end is called.
func (o *outOfBand) start(ctx context.Context, logger *slog.Logger) {
	o.logger = logger
	o.begin(ctx, o.endpoints.all, o.follow)
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
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		e.scheme+"://"+x.address+"/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics", bytes.NewReader(reportRequest(o.every)))
	if err != nil {
		return false, err
	}
	r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"spillway"}}
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

// reportRequest returns an OrcaLoadReportRequest as gRPC sends it: report_interval = 1, a
// google.protobuf.Duration with seconds = 1 and nanos = 2.
func reportRequest(every time.Duration) []byte {
	duration := binary.AppendUvarint([]byte{1 << 3}, uint64(every/time.Second))
	duration = binary.AppendUvarint(append(duration, 2<<3), uint64(every%time.Second))
	message := append([]byte{1<<3 | 2, byte(len(duration))}, duration...)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// maxReport is the maximum length of a report.
const maxReport = 16 << 10

// readMessage reads one gRPC message, which must not be compressed.
func readMessage(from io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if head[0] != 0 || n > maxReport {
		return nil, fmt.Errorf("a message of %d bytes (flags %d), must be at most %d and not compressed", n, head[0], maxReport)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(from, message)
	return message, err
}
