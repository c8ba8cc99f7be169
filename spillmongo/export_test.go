package spillmongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// driverError is what the driver makes of an answer.
func driverError(body bson.Raw) error {
	return driver.ExtractErrorFromServerResponse(bsoncore.Document(body))
}
