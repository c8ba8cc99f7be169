package spillmongo

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// KnownDrivers is for the tests from outside.
func KnownDrivers() string { return strings.Join(knownDrivers, " ") }

// RaceEnabled says that the race detector is in this test.
const RaceEnabled = raceEnabled

// driverError is what the driver makes of an answer.
func driverError(body bson.Raw) error {
	return driver.ExtractErrorFromServerResponse(bsoncore.Document(body))
}

// Dirty reports whether the next new use of a session, by its lsid, gets another ID.
func Dirty(r *Retrier, id bson.Raw) bool {
	r.sessions.mu.Lock()
	defer r.sessions.mu.Unlock()
	b := uuid(id.Lookup("id"))
	if b == nil {
		return false
	}
	state := r.sessions.all[sessionID(b)]
	return state != nil && state.dirty
}
