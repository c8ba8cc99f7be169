package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillmongo/mongotune"
)

// tuneCommand has the flags of "spillway tune".
type tuneCommand struct {
	URI     string   `required:"" env:"SPILLWAY_TUNE_URI" help:"Connection string of one mongod or mongos. Use the environment variable for a string with a password."`
	Enforce bool     `help:"Set the limits. Without it the changes are only logged."`
	Limits  []string `default:"requests,connections" enum:"requests,connections" help:"Limits to adjust: requests, connections."`

	Latency time.Duration `placeholder:"DURATION" help:"Target for the mean latency of reads and writes (default none)."`
	Queued  float64       `placeholder:"N" help:"Target for the number of operations that wait for a lock or a ticket (default none)."`
	CPU     float64       `name:"cpu" placeholder:"SHARE" help:"Target for the share of all cores that the process uses, such as 0.9 (default none). Reported on Linux only."`
	Memory  float64       `placeholder:"SHARE" help:"Target for the share of the host's memory that the process has, such as 0.9 (default none)."`
	Tickets float64       `placeholder:"SHARE" help:"Target for the share of read or write tickets in use, such as 0.95 (default none)."`

	RequestsStart    float64 `placeholder:"RATE" help:"Requests per second to start with (default what the server has, or 10000)."`
	RequestsMin      float64 `placeholder:"RATE" help:"Lower bound of requests per second (default 10)."`
	RequestsMax      float64 `placeholder:"RATE" help:"Upper bound of requests per second (default 1000000)."`
	ConnectionsStart float64 `placeholder:"RATE" help:"New connections per second to start with (default what the server has, or 1000)."`
	ConnectionsMin   float64 `placeholder:"RATE" help:"Lower bound of new connections per second (default 5)."`
	ConnectionsMax   float64 `placeholder:"RATE" help:"Upper bound of new connections per second (default 100000)."`

	Burst    float64       `placeholder:"SECONDS" help:"Burst: seconds of the limit that may come at once (default 1)."`
	Reaction time.Duration `placeholder:"DURATION" help:"Minimum time between two changes of a limit (default 500ms)."`
	Timeout  time.Duration `default:"10s" placeholder:"DURATION" help:"Timeout for the first connection to the server (default ${default})."`
}

func (*tuneCommand) Help() string {
	return "Adjusts the two ingress limits of a MongoDB server (8.2, or a release that has them) to its capacity: " +
		"it reads serverStatus and sets ingressRequestAdmissionRatePerSec and ingressConnectionEstablishmentRatePerSec. " +
		"Set at least one target. At its end the command restores the parameters that it found."
}

// tuneAppName is exempt from the limiter of requests while the command enforces.
const tuneAppName = "spillway-tune"

// client connects to the one server of the URI.
func (c *tuneCommand) client() (*mongo.Client, error) {
	o := options.Client().ApplyURI(c.URI).SetAppName(tuneAppName).SetDirect(true).SetServerSelectionTimeout(c.Timeout)
	if err := o.Validate(); err != nil {
		return nil, usage{err}
	}
	return mongo.Connect(o)
}

func (c *tuneCommand) config(client *mongo.Client, logger *slog.Logger) mongotune.ControllerConfig {
	k := mongotune.ControllerConfig{
		Client: client, AppName: tuneAppName, Enforce: c.Enforce, Logger: logger, BurstSeconds: c.Burst, Reaction: c.Reaction,
		Targets: mongotune.Targets{Latency: c.Latency, Queued: c.Queued, CPU: c.CPU, Memory: c.Memory, Tickets: c.Tickets},
	}
	if slices.Contains(c.Limits, "requests") {
		k.Requests = &mongotune.Bounds{Start: c.RequestsStart, Min: c.RequestsMin, Max: c.RequestsMax}
	}
	if slices.Contains(c.Limits, "connections") {
		k.Connections = &mongotune.Bounds{Start: c.ConnectionsStart, Min: c.ConnectionsMin, Max: c.ConnectionsMax}
	}
	return k
}

func (c *tuneCommand) Run(ctx context.Context, w streams) error {
	if c.Latency == 0 && c.Queued == 0 && c.CPU == 0 && c.Memory == 0 && c.Tickets == 0 {
		return usage{errors.New("no target: give at least one of --latency, --queued, --cpu, --memory and --tickets")}
	}
	for flag, share := range map[string]float64{"cpu": c.CPU, "memory": c.Memory, "tickets": c.Tickets} {
		if !(share >= 0 && share <= 1) { // also finds NaN
			return usage{fmt.Errorf("--%s is %v, must be a share from 0 to 1, such as 0.9", flag, share)}
		}
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Disconnect(end) // the process ends
	}()
	logger := slog.New(slog.NewTextHandler(w.stderr, nil))
	start, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	controller, err := mongotune.NewController(start, c.config(client, logger))
	if _, wrong := errors.AsType[*spillway.FieldError](err); wrong {
		return usage{err}
	}
	if err != nil {
		return err
	}
	logger.Info("tuning", "server", options.Client().ApplyURI(c.URI).Hosts, "enforce", c.Enforce, "limits", c.Limits, "pid", os.Getpid())
	return controller.Run(ctx)
}
