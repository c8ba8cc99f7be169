package mongotest

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A command is how one command is run.
type command struct {
	run      func(*request) (bson.D, error)
	where    where
	before   bool // is run before a client authenticates
	sessions bool // may be a retryable write, or part of a transaction
	ends     bool // ends a transaction
}

// where says which members of a replica set run a command.
type where int

const (
	anywhere where = iota
	reader         // the primary, and a secondary if the client says so
	primary
)

// commands are all there are.
var commands = map[string]command{
	"hello":              {run: runHello, before: true},
	"isMaster":           {run: runHello, before: true},
	"ismaster":           {run: runHello, before: true},
	"saslStart":          {run: runSASLStart, before: true},
	"saslContinue":       {run: runSASLContinue, before: true},
	"logout":             {run: runLogout, before: true},
	"ping":               {run: runNothing},
	"buildInfo":          {run: runBuildInfo},
	"buildinfo":          {run: runBuildInfo},
	"serverStatus":       {run: runServerStatus},
	"getParameter":       {run: runGetParameter},
	"setParameter":       {run: runSetParameter},
	"configureFailPoint": {run: runConfigureFailPoint},
	"replSetStepDown":    {run: runStepDown, where: primary},

	"insert":        {run: runInsert, where: primary, sessions: true},
	"update":        {run: runUpdate, where: primary, sessions: true},
	"delete":        {run: runDelete, where: primary, sessions: true},
	"findAndModify": {run: runFindAndModify, where: primary, sessions: true},
	"findandmodify": {run: runFindAndModify, where: primary, sessions: true},
	"bulkWrite":     {run: runBulkWrite, where: primary, sessions: true},

	"find":        {run: runFind, where: reader, sessions: true},
	"aggregate":   {run: runAggregate, where: reader, sessions: true},
	"count":       {run: runCount, where: reader, sessions: true},
	"distinct":    {run: runDistinct, where: reader, sessions: true},
	"getMore":     {run: runGetMore, sessions: true},
	"killCursors": {run: runKillCursors},

	"create":          {run: runCreate, where: primary, sessions: true},
	"drop":            {run: runDrop, where: primary},
	"dropDatabase":    {run: runDropDatabase, where: primary},
	"createIndexes":   {run: runCreateIndexes, where: primary, sessions: true},
	"dropIndexes":     {run: runDropIndexes, where: primary},
	"collMod":         {run: runNothing, where: primary},
	"listDatabases":   {run: runListDatabases, where: reader},
	"listCollections": {run: runListCollections, where: reader},
	"listIndexes":     {run: runListIndexes, where: reader},

	"commitTransaction": {run: runCommit, where: primary, sessions: true, ends: true},
	"abortTransaction":  {run: runAbort, where: primary, sessions: true, ends: true},
	"refreshSessions":   {run: runNothing},
	"endSessions":       {run: runEndSessions},
	"killSessions":      {run: runEndSessions},
	"killAllSessions":   {run: runEndSessions},
}

func runNothing(*request) (bson.D, error) { return bson.D{}, nil }

func runBuildInfo(*request) (bson.D, error) {
	return bson.D{
		{Key: "version", Value: version},
		{Key: "versionArray", Value: bson.A{int32(8), int32(2), int32(0), int32(0)}},
		{Key: "maxBsonObjectSize", Value: int32(16 << 20)},
		{Key: "modules", Value: bson.A{}},
	}, nil
}

// runStepDown hands the primary's part to the next node.
func runStepDown(r *request) (bson.D, error) {
	d := r.node.deployment
	d.SetPrimary((r.node.index + 1) % len(d.nodes))
	return bson.D{}, nil
}
