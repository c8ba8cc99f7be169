package resources

import (
	"context"
	"log/slog"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// reserved are for everything else: sockets, the admin server, health checks, logs, the
// runtime.
const reserved = 64

// A Cap is a cap that is lower than configured.
type Cap struct {
	Part    string // listener or cluster
	Name    string // of it
	Setting string // max_connections or max_requests
	// Configured is zero or less for no cap.
	Configured, InForce int
}

// FitOpenFiles lowers the caps of a configuration, which has its defaults, to fit the limit on open
// files: half of the files are for client connections, shared by the listeners, and half for
// connections to endpoints, shared by the endpoints. It returns the caps that it has lowered. If
// files is zero or less, the limit is unknown and nothing changes.
func FitOpenFiles(c *config.Config, files int) (lowered []Cap) {
	if files <= 0 {
		return nil
	}
	lower := func(field *int, most int, part, name, setting string) {
		most = max(1, most)
		if *field > 0 && *field <= most {
			return
		}
		lowered = append(lowered, Cap{part, name, setting, *field, most})
		*field = most
	}
	usable := max(2, files-min(reserved, files/2))
	listeners := len(c.Listeners) + len(c.Mongo)
	for i := range c.Listeners {
		l := &c.Listeners[i]
		lower(&l.MaxConnections, usable/2/listeners, "listener", l.Name, "max_connections")
		lower(&l.MaxRequests, usable/listeners, "listener", l.Name, "max_requests")
	}
	pools := 0
	for i := range c.Clusters {
		pools += len(c.Clusters[i].Endpoints)
		if c.Clusters[i].Protocol == "auto" { // connections of two protocols may be kept
			pools += len(c.Clusters[i].Endpoints)
		}
	}
	for i := range c.Clusters {
		x := &c.Clusters[i]
		lower(&x.MaxConnections, usable/2/pools, "cluster", x.Name, "max_connections")
	}
	return lowered
}

// LogCaps writes a line for each cap: a warning, if it is less than half of what is configured, as the
// defaults are generous.
func LogCaps(logger *slog.Logger, lowered []Cap) {
	for _, x := range lowered {
		level := slog.LevelInfo
		if x.Configured <= 0 || x.InForce < x.Configured/2 {
			level = slog.LevelWarn
		}
		logger.Log(context.Background(), level, "a cap is lower than configured: the limit on open files does not allow for more; raise it (ulimit -n, LimitNOFILE)",
			x.Part, x.Name, "cap", x.Setting, "configured", x.Configured, "in_force", x.InForce)
	}
}
