package gateway

import (
	"context"
	"log/slog"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A process without file descriptors can neither accept nor open connections. The caps on
// connections and requests are therefore lowered to what the limit on open files allows.

// reservedFiles are for everything else: sockets, the admin server, health checks, logs, the
// runtime.
const reservedFiles = 64

// fit lowers the caps of a configuration, which has its defaults, to fit the limit on open
// files: half of the files are for client connections, shared by the listeners, and half for
// connections to endpoints, shared by the endpoints. If files is zero or less, the limit is
// unknown and nothing changes.
func fit(c *config.Config, files int, logger *slog.Logger) {
	if files <= 0 {
		return
	}
	usable := max(2, files-min(reservedFiles, files/2))
	listeners := len(c.Listeners) + len(c.Mongo)
	for i := range c.Listeners {
		l := &c.Listeners[i]
		lower(&l.MaxConnections, usable/2/listeners, logger, "listener", l.Name, "max_connections")
		lower(&l.MaxRequests, usable/listeners, logger, "listener", l.Name, "max_requests")
	}
	pools := 0
	for i := range c.Clusters {
		pools += len(c.Clusters[i].Endpoints) * protocols(&c.Clusters[i])
	}
	for i := range c.Clusters {
		x := &c.Clusters[i]
		lower(&x.MaxConnections, usable/2/pools, logger, "cluster", x.Name, "max_connections")
	}
}

// protocols returns the number of protocols for which connections to an endpoint may be kept.
func protocols(x *config.Cluster) int {
	if x.Protocol == "auto" {
		return 2
	}
	return 1
}

// lower lowers a cap to most if it is higher or not set. The result is at least one.
func lower(field *int, most int, logger *slog.Logger, part, name, what string) {
	most = max(1, most)
	if *field > 0 && *field <= most {
		return
	}
	level := slog.LevelInfo // the defaults are generous
	if *field <= 0 || most < *field/2 {
		level = slog.LevelWarn
	}
	logger.Log(context.Background(), level, "a cap is lower than configured: the limit on open files does not allow for more; raise it (ulimit -n, LimitNOFILE)",
		part, name, "cap", what, "configured", *field, "in_force", most)
	*field = most
}
