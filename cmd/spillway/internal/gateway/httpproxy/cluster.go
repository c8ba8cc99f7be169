package httpproxy

import (
	"context"
	"log/slog"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
)

// A cluster is where requests are sent, and the places that they have there.
type cluster struct {
	*upstream.Cluster

	pool clients.Pool
}

// replace is Replace, and has the places follow.
func (x *cluster) replace(ctx context.Context, logger *slog.Logger, u *upstream.Version) {
	x.Replace(ctx, logger, u)
	x.pool.Limit(u.Places(false), u.Places(true))
}
