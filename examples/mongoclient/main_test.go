package main

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

func TestWrite(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{})
	client, retrier, err := connect(d.URI() + "&adaptiveRetries=true")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(t.Context())
	if got := write(t.Context(), client); got != "written" {
		t.Error(got)
	}
	for mode, want := range map[any]string{"once": "written", "always": "the server is overloaded"} {
		fail := bson.E{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}}
		if mode == "always" {
			fail.Value = "alwaysOn"
		}
		if _, err := d.Node(0).RunCommand("admin", bson.D{{Key: "configureFailPoint", Value: "failCommand"}, fail, {Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "errorCode", Value: 462},
			{Key: "errorLabels", Value: bson.A{"SystemOverloadedError", "RetryableError"}},
		}}}); err != nil {
			t.Fatal(err)
		}
		if got := write(t.Context(), client); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", mode, got)
		}
	}
	if s := retrier.Stats(time.Now()); s.RetriesTotal != 6 || s.Budget.Capacity != 1000 {
		t.Errorf("%+v", s)
	}
}
