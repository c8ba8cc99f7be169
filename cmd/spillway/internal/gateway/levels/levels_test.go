package levels

import (
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy"
)

// TestNamesOfMongoServers: a cluster may have the name of a MongoDB listener.
func TestNamesOfMongoServers(t *testing.T) {
	c := &config.Config{Clusters: []config.Cluster{{Name: "shop"}}}
	for listener, want := range map[string]string{"shop": "shop (mongodb)", "orders": "orders"} {
		if got := mongoGate(c, &mongoproxy.Stats{Listener: listener}).Cluster; got != want {
			t.Errorf("the servers of listener %s are %s, want %s", listener, got, want)
		}
	}
}
