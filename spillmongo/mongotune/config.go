package mongotune

import (
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed90641741/spillway/tune"
)

// Bounds are where a limit starts, and how far it may go, per second.
type Bounds struct {
	// Start is the limit to begin with, and to go back to when the signals are missing.
	// Zero means what the server has, if its limiter is enabled and below 1e6, else
	// 10000 for requests and 1000 for connections.
	Start float64
	// Min and Max bound the limit. Zero means 10 and 1e6 for requests, and 5 and 1e5 for
	// connections: with less, applications cannot recover, and more does not limit.
	Min, Max float64
}

// Targets are the values at which a limit is right. The greatest share that any has of
// its target decides. Zero means that the signal is not used.
type Targets struct {
	Latency time.Duration // mean of the operations
	Queued  float64       // operations that wait for a lock or a ticket
	CPU     float64       // of the process, as a share of all cores
	Memory  float64       // resident, as a share of the memory of the host
	Tickets float64       // that are in use, as a share
}

// ControllerConfig names the server, its limits to move, and the targets.
type ControllerConfig struct {
	// Client is connected to one server, with AppName as its application name. It must
	// not be nil, and not be closed before Run has returned.
	Client *mongo.Client
	// AppName is exempted from the limiter of requests while Run enforces, so that the
	// server does not reject the controller. Empty exempts nothing.
	AppName string
	// Requests and Connections are the limits to move. Nil means not to.
	Requests, Connections *Bounds
	// Targets must have one at least that the server reports.
	Targets Targets
	// BurstSeconds is as in [Config].
	BurstSeconds float64
	// Enforce sets the limits. Without it Run only logs what it would do.
	Enforce bool
	// Reaction is the least time between two moves of a limit; the server is asked twice
	// in that time. Zero means 500 ms; it must be 100 ms to 1 h.
	Reaction time.Duration
	// Logger receives each move with its reason. Nil means slog.Default().
	Logger *slog.Logger
}

// A signal is a target and where its value is.
type signal struct {
	tune.Signal

	of func(*Reading) float64
}

func (t Targets) signals() (all []signal) {
	add := func(name, unit string, target float64, of func(*Reading) float64) {
		if target != 0 {
			all = append(all, signal{tune.Signal{Name: name, Unit: unit, Target: target}, of})
		}
	}
	add("latency", "ms", t.Latency.Seconds()*1000, func(r *Reading) float64 { return r.Latency })
	add("queued", "", t.Queued, func(r *Reading) float64 { return r.Queued })
	add("cpu", "%", t.CPU*100, func(r *Reading) float64 { return r.CPU * 100 })
	add("memory", "%", t.Memory*100, func(r *Reading) float64 { return r.Memory * 100 })
	add("tickets", "%", t.Tickets*100, func(r *Reading) float64 { return r.Tickets * 100 })
	return all
}
