package mongotest_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// TestUsers lets the driver authenticate in the ways that it knows, and be rejected.
func TestUsers(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Users: map[string]string{"ann": "secret"}})
	for _, test := range []struct {
		name, mechanism, password string
		ok                        bool
	}{
		{"negotiated", "", "secret", true},
		{"SHA-256", "SCRAM-SHA-256", "secret", true},
		{"SHA-1", "SCRAM-SHA-1", "secret", true},
		{"wrong password", "", "guess", false},
		{"unknown mechanism", "PLAIN", "secret", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := mongo.Connect(d.Options().SetAuth(options.Credential{
				Username: "ann", Password: test.password, AuthMechanism: test.mechanism,
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Disconnect(t.Context())
			if _, err = c.Database("test").Collection("c").InsertOne(t.Context(), bson.D{}); (err == nil) != test.ok {
				t.Errorf("got the error %v", err)
			}
		})
	}
	stranger, err := mongo.Connect(d.Options())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Disconnect(t.Context())
	if err := stranger.Database("test").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err(); err == nil {
		t.Error("a stranger was served")
	}
	if _, err := mongotest.New(mongotest.Config{Users: map[string]string{"": "x"}}); err == nil {
		t.Error("a user without a name was accepted")
	}
}

// TestCompressors lets the driver use each of them.
func TestCompressors(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		c, err := mongo.Connect(d.Options().SetCompressors([]string{name}))
		if err != nil {
			t.Fatal(err)
		}
		var got bson.M
		coll := c.Database("test").Collection(name)
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: name}}); err != nil {
			t.Error(name, err)
		}
		if err := coll.FindOne(t.Context(), bson.D{}).Decode(&got); err != nil || got["_id"] != name {
			t.Error(name, got, err)
		}
		if err := c.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
