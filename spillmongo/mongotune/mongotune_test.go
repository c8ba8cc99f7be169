package mongotune

import (
	"math"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var t0 = time.Unix(1_700_000_000, 0)

// TestReplaces: a process is another one if its name differs, or if it was started later.
func TestReplaces(t *testing.T) {
	was := status{process: "a 1", started: t0}
	for _, row := range []struct {
		is   status
		want bool
	}{
		{was, false},
		{status{process: "a 1", started: t0.Add(time.Second)}, false}, // the clocks of a reading differ
		{status{process: "a 2", started: t0}, true},
		{status{process: "a 1", started: t0.Add(time.Minute)}, true},
		{status{process: "a 1", started: t0.Add(-time.Minute)}, false},
	} {
		if row.is.replaces(&was) != row.want {
			t.Errorf("%+v: want %v", row.is, row.want)
		}
	}
	if unknown := (status{process: "a 1"}); was.replaces(&unknown) {
		t.Error("a restart, though the former start is not known")
	}
}

// A server may say anything.
func FuzzStatus(f *testing.F) {
	f.Add([]byte("\x05\x00\x00\x00\x00"))
	good, err := bson.Marshal(bson.D{{Key: "pid", Value: 1}, {Key: "opLatencies", Value: bson.D{{Key: "reads", Value: bson.D{{Key: "ops", Value: 1}}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, doc []byte) {
		if bson.Raw(doc).Validate() != nil {
			return
		}
		for _, limit := range []Limit{Requests, Connections} {
			s := &Server{config: Config{Limit: limit}}
			var r Reading
			s.compare(&r, s.parse(doc, t0.Add(time.Second)), s.parse(doc, t0))
			if r.Used != 0 && !math.IsNaN(r.Used) || r.Latency != 0 && !math.IsNaN(r.Latency) {
				t.Errorf("a status compared with itself: %+v", r)
			}
		}
	})
}
