package mongotest

import (
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/docdb"
	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// isGeneric reports whether a field belongs to commands of any kind.
func isGeneric(field string) bool {
	switch field {
	case "$db", "lsid", "$clusterTime", "$readPreference", "comment", "maxTimeMS", "apiVersion", "apiStrict",
		"apiDeprecationErrors", "readConcern", "writeConcern":
		return true
	}
	return false
}

func runSetParameter(r *request) (bson.D, error) {
	all, err := bson.Marshal(r.node.limits.parameters())
	if err != nil {
		return nil, err
	}
	set := bson.D{}
	for name, v := range wire.Elements(r.body) {
		if name == r.name || isGeneric(name) {
			continue
		}
		set = append(set, bson.E{Key: name, Value: v})
	}
	if len(set) == 0 {
		return nil, failf(docdb.InvalidOptions, "no option found to set")
	}
	doc, err := bson.Marshal(set)
	if err != nil {
		return nil, err
	}
	was := bson.Raw(all).Lookup(set[0].Key)
	if err := r.node.limits.set(doc); err != nil {
		return nil, err
	}
	return bson.D{{Key: "was", Value: was}}, nil
}

func runGetParameter(r *request) (bson.D, error) {
	all, err := bson.Marshal(r.node.limits.parameters())
	if err != nil {
		return nil, err
	}
	star, _ := r.arg.StringValueOK()
	out := bson.D{}
	for name, v := range wire.Elements(all) {
		if star == "*" || !r.body.Lookup(name).IsZero() {
			out = append(out, bson.E{Key: name, Value: v})
		}
	}
	if !r.body.Lookup("featureCompatibilityVersion").IsZero() {
		out = append(out, bson.E{Key: "featureCompatibilityVersion", Value: bson.D{{Key: "version", Value: "8.2"}}})
	}
	if len(out) == 0 {
		return nil, failf(docdb.InvalidOptions, "no option found to get")
	}
	return out, nil
}

func runServerStatus(r *request) (bson.D, error) {
	now := time.Now()
	s := r.node.Stats()
	conns, reqs := r.node.limits.conns.Stats(now), r.node.limits.reqs.Stats(now)
	var requests uint64
	for _, n := range s.Commands {
		requests += n
	}
	return bson.D{
		{Key: "host", Value: r.node.address},
		{Key: "version", Value: version},
		{Key: "process", Value: r.process()},
		{Key: "pid", Value: int64(os.Getpid())},
		{Key: "uptimeMillis", Value: now.Sub(r.node.since()).Milliseconds()},
		{Key: "localTime", Value: now},
		{Key: "connections", Value: bson.D{
			{Key: "current", Value: int32(s.Connections)},
			{Key: "totalCreated", Value: int64(s.Accepted)},
			{Key: "queuedForEstablishment", Value: int64(conns.Waiting)},
			{Key: "establishmentRateLimit", Value: bson.D{
				{Key: "rejected", Value: int64(conns.RejectedTotal)},
				{Key: "exempted", Value: int64(conns.ExemptedTotal)},
				{Key: "interruptedDueToClientDisconnect", Value: int64(conns.AbandonedTotal)},
			}},
		}},
		{Key: "globalLock", Value: r.node.latencies.clients(r.node.worker.waiting.Load())},
		{Key: "opLatencies", Value: r.node.latencies.status()},
		{Key: "network", Value: bson.D{
			{Key: "numRequests", Value: int64(requests)},
			{Key: "ingressRequestRateLimiter", Value: admissions(reqs)},
		}},
		{Key: "queues", Value: bson.D{{Key: "execution", Value: r.node.worker.queues()}, {Key: "ingressSessionEstablishment", Value: append(bson.D{
			{Key: "addedToQueue", Value: int64(conns.QueuedTotal)},
			{Key: "removedFromQueue", Value: int64(conns.QueuedTotal) - int64(conns.Waiting)},
			{Key: "interruptedInQueue", Value: int64(conns.AbandonedTotal)},
			{Key: "averageTimeQueuedMicros", Value: averageQueued(conns)},
		}, admissions(conns)...)}}},
	}, nil
}

// admissions are the counts that the two limiters share.
func admissions(s ratelimit.Stats) bson.D {
	return bson.D{
		{Key: "attemptedAdmissions", Value: int64(s.AdmittedTotal + s.RejectedTotal + s.AbandonedTotal + uint64(s.Waiting))},
		{Key: "successfulAdmissions", Value: int64(s.AdmittedTotal)},
		{Key: "rejectedAdmissions", Value: int64(s.RejectedTotal)},
		{Key: "exemptedAdmissions", Value: int64(s.ExemptedTotal)},
		{Key: "totalAvailableTokens", Value: int64(max(0, s.Tokens))},
	}
}

func averageQueued(s ratelimit.Stats) float64 {
	left := s.QueuedTotal - uint64(s.Waiting)
	if left == 0 {
		return 0
	}
	return float64(s.TimeQueued.Microseconds()) / float64(left)
}

// process is the program that the node would be.
func (r *request) process() string {
	if t := r.node.deployment.config.Topology; t == Sharded || t == LoadBalanced {
		return "mongos"
	}
	return "mongod"
}
