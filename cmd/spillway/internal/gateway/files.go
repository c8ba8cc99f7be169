package gateway

import (
	"context"
	"log/slog"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A process without file descriptors can neither accept nor open connections. The caps on
// connections and requests are therefore lowered to what the limit on open files allows.

// reservedFiles are for all else: sockets, the page for operators, health checks, logs, the
// runtime.
const reservedFiles = 64

// fit lowers the caps of a configuration, which has its defaults, to what so many open
// files allow: half of them for connections of clients, shared by the listeners, and half
// for those to endpoints, shared by these. Not above zero: the limit is not known.
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

// protocols is by how many of them connections to an endpoint may be kept.
func protocols(x *config.Cluster) int {
	if x.Protocol == "auto" {
		return 2
	}
	return 1
}

// lower makes a cap that is higher than most, or none, most. There is always one.
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
