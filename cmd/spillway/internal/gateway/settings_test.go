package gateway

import (
	"slices"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// TestSettings: the name of a setting may have a colon, as the key of a limit has.
func TestSettings(t *testing.T) {
	c := config.ForUpstream("127.0.0.1:8000", "127.0.0.1:8080")
	c.Clusters[0].Shed.MaxInFlightByKey = map[string]int{"upstream: db": 5}
	all := Settings(*c, *c.Defaulted())
	for _, want := range []settings.Setting{
		{Field: "clusters[upstream].shed.max_in_flight_by_key.upstream: db", Value: "5", Given: true},
		{Field: "clusters[upstream].max_connections", Value: "1024"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%+v is missing in %+v", want, all)
		}
	}
}
