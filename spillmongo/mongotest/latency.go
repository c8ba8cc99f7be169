package mongotest

import (
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// latencies are how long operations took, as serverStatus has it.
type latencies struct {
	kinds   [3]latency
	running [3]atomic.Int64
}

type latency struct{ ops, micros atomic.Int64 }

var latencyNames = [...]string{"reads", "writes", "commands"}

// kindOf returns the kind of a command, by its place in latencyNames.
func kindOf(name string) int {
	switch name {
	case "find", "aggregate", "count", "distinct", "getMore":
		return 0
	case "insert", "update", "delete", "findAndModify", "findandmodify", "bulkWrite":
		return 1
	}
	return 2
}

// time counts an operation that begins now, and ends when the func is called.
func (l *latencies) time(name string) (end func()) {
	if commands[name].before {
		return func() {} // it may wait for a change of the topology
	}
	start, kind := time.Now(), kindOf(name)
	l.running[kind].Add(1)
	return func() {
		l.running[kind].Add(-1)
		l.kinds[kind].ops.Add(1)
		l.kinds[kind].micros.Add(time.Since(start).Microseconds())
	}
}

// clients are the operations that run or wait.
func (l *latencies) clients(waiting int64) bson.D {
	return bson.D{
		{Key: "currentQueue", Value: bson.D{{Key: "total", Value: int32(waiting)}}},
		{Key: "activeClients", Value: bson.D{
			{Key: "readers", Value: int32(l.running[0].Load())},
			{Key: "writers", Value: int32(l.running[1].Load())},
		}},
	}
}

func (l *latencies) status() (all bson.D) {
	for i, name := range latencyNames {
		all = append(all, bson.E{Key: name, Value: bson.D{
			{Key: "latency", Value: l.kinds[i].micros.Load()},
			{Key: "ops", Value: l.kinds[i].ops.Load()},
		}})
	}
	return all
}
