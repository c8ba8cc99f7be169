package spillxds

import (
	"context"
	"time"

	orcaservice "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// UnaryInterceptor adds the report to the trailer of each unary call. Place it before
// interceptors that reject, so that rejections carry it too.
func (o *Orca) UnaryInterceptor(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	o.calls.Add(1)
	resp, err := next(ctx, req)
	_ = grpc.SetTrailer(ctx, o.at(time.Now()).trailer) // there always is a stream
	return resp, err
}

// StreamInterceptor does for streams what UnaryInterceptor does for unary calls.
func (o *Orca) StreamInterceptor(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	o.calls.Add(1)
	err := next(srv, ss)
	ss.SetTrailer(o.at(time.Now()).trailer)
	return err
}

// Register adds the service of reports out of band to s. Call [Orca.Close] before
// a graceful stop of the server.
func (o *Orca) Register(s grpc.ServiceRegistrar) {
	orcaservice.RegisterOpenRcaServiceServer(s, outOfBand{orca: o})
}

// outOfBand sends reports at the interval that the client asks for, within limits.
type outOfBand struct {
	orcaservice.UnimplementedOpenRcaServiceServer

	orca *Orca
}

// StreamCoreMetrics implements the service.
func (s outOfBand) StreamCoreMetrics(r *orcaservice.OrcaLoadReportRequest, stream orcaservice.OpenRcaService_StreamCoreMetricsServer) error {
	every := min(max(r.GetReportInterval().AsDuration(), s.orca.config.MinOutOfBand), maxReportInterval)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := stream.Send(s.orca.Report(time.Now())); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-s.orca.stop:
			return status.Error(codes.Unavailable, "the server is stopping")
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
