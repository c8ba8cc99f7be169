package spillgrpc

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/seed90641741/spillway/inflight"
)

const (
	// configuredWithin is how long a limit may take to come from a control plane: as long
	// as gRFC A57 waits for a resource.
	configuredWithin = 15 * time.Second
	// maxReported bounds what is kept of clusters that were reported.
	maxReported = 1024
)

// unconfigured reports each cluster once whose limit nothing sets: its name may be wrong.
type unconfigured struct {
	log func(text string)

	mu       sync.Mutex
	reported map[inflight.Key]bool
}

func newUnconfigured() *unconfigured {
	logger := grpclog.Component("spillway")
	return &unconfigured{
		log:      func(text string) { logger.Error(text) }, // grpc shows no less by default
		reported: make(map[inflight.Key]bool),
	}
}

// watch looks at a limit in configuredWithin, unless the result is called before.
func (u *unconfigured) watch(key inflight.Key, l *inflight.Limiter) (stop func() bool) {
	return time.AfterFunc(configuredWithin, func() { u.check(key, l) }).Stop
}

func (u *unconfigured) check(key inflight.Key, l *inflight.Limiter) {
	if l.Configured() || !u.first(key) {
		return
	}
	u.log(fmt.Sprintf("spillgrpc: nothing has set a limit for the cluster %q within %v, so the default of %d requests in flight applies: "+
		"set BalancerConfig.MaxConcurrentRequests, or correct BalancerConfig.Cluster or EDSServiceName if the control plane has another name",
		key.Cluster, configuredWithin, inflight.DefaultMaxInFlight))
}

// first reports whether a cluster has not been reported yet.
func (u *unconfigured) first(key inflight.Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported[key] || len(u.reported) >= maxReported {
		return false
	}
	u.reported[key] = true
	return true
}
