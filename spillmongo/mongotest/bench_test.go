package mongotest_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// BenchmarkRoundTrip is what the driver and a node take for one command, over loopback.
func BenchmarkRoundTrip(b *testing.B) {
	d := mongotest.Start(b, mongotest.Config{})
	coll := connect(b, d).Database("db").Collection("c")
	if _, err := coll.InsertOne(b.Context(), doc(1, 1)); err != nil {
		b.Fatal(err)
	}
	b.Run("ping", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := coll.Database().Client().Ping(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := coll.FindOne(b.Context(), id(1)).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("insert", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := coll.InsertOne(b.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
