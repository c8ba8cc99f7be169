package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/xds"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// TestControlPlaneIsNoticed: operators see that the control plane is away, once it has been for a while.
func TestControlPlaneIsNoticed(t *testing.T) {
	c, err := config.Parse("proxy.yaml", []byte("listeners: [{address: '127.0.0.1:0'}]\nclusters: [{name: shop, endpoints: ['127.0.0.1:1'], xds: {cluster: remote}}]\n"+
		"xds: {address: '127.0.0.1:1', node: {id: proxy}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	control, collector := new(xds.Connector), collector.New()
	p, err := gateway.Start(context.Background(), c, gateway.Config{
		Logger: slog.New(slog.DiscardHandler), Observer: collector, Accounts: collector.Accounts(), Connect: control.Connect,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	log, logger := newLogging(io.Discard, "")
	defer log.close()
	o := supervisor{follower: &follower{logger: logger, draining: make(chan struct{})}, proxy: p, collector: collector, now: c, log: log, control: control}
	o.use(c)
	now := time.Now()
	for after, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		notices := o.Levels(now.Add(after)).Notices
		if got := slices.ContainsFunc(notices, func(n admin.Notice) bool { return n.Kind == telemetry.NoticeControlPlane }); got != want {
			t.Errorf("after %v: %v, the notices are %+v", after, got, notices)
		}
	}
}
