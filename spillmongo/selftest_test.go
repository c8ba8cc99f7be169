package spillmongo

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The call stack shows each kind of operation, for all commands that the driver has a method for.
func TestSelfTest(t *testing.T) {
	if err := selfTest(); err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{ // getMore and killCursors come from a type of the driver that batchCursor names
		"getMore": true, "killCursors": true, "listSearchIndexes": true, // an aggregation
	}
	for _, o := range operations(t.Context(), nil, new(mongo.Client).Database("test")) {
		tested[o.name] = true
	}
	for name := range kinds {
		if !tested[name] {
			t.Errorf("%s is not tested", name)
		}
	}
}

// A driver whose operations look different is rejected, and says which operation that is.
func TestUnknownDriver(t *testing.T) {
	p := new(probe)
	client, err := mongo.Connect(&options.ClientOptions{Deployment: p}) //nolint:staticcheck // as in selfTest
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operations(t.Context(), p, client.Database("test")) {
		for _, other := range []func(*seen){
			func(s *seen) { s.kind = (s.kind + 1) % 3 },
			func(s *seen) { s.ends = !s.ends },
			func(s *seen) { s.byRunCommand = !s.byRunCommand },
			func(s *seen) { s.byChangeStream = !s.byChangeStream },
		} {
			unlike := o
			other(&unlike.want)
			if err := p.check([]probed{unlike}); !errors.Is(err, errUnknownDriver) {
				t.Errorf("%s: %v", o.name, err)
			}
		}
	}
	if err := client.Disconnect(context.Background()); err != nil {
		t.Error(err)
	}
	known := selfTest
	defer func() { selfTest = known }()
	selfTest = func() error { return errUnknownDriver }
	if _, err := New(nil, Config{}); !errors.Is(err, errUnknownDriver) {
		t.Errorf("New returns %v", err)
	}
}
