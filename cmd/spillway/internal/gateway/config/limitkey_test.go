package config

import "testing"

// TestLimitKey: what requests wait for is the cluster, where no route names another. Routes have a name each.
func TestLimitKey(t *testing.T) {
	for _, row := range []struct {
		route Route
		name  string
		want  string
	}{
		{Route{Cluster: "shop"}, "shop", "shop"},
		{Route{Cluster: "shop", Host: "a.example", Path: "/x", Methods: []string{"GET", "PUT"}}, "shop: a.example/x GET,PUT", "shop"},
		{Route{Cluster: "shop", Path: "/x", Key: "db"}, "shop: db", "shop: db"},
		{Route{Cluster: "shop", Path: "/y", Methods: []string{"GET"}, Key: "db"}, "shop: db", "shop: db"},
		{Route{Cluster: "other", Path: "/x", Key: "db"}, "other: db", "other: db"},
	} {
		c := Config{Routes: []Route{row.route, {Cluster: "shop", Path: "/other"}}}
		got := c.Ingress(&Listener{}, &Cluster{Name: row.route.Cluster}).LimitKey(row.route.Name())
		if row.route.LimitKey() != row.want || got != row.want || row.route.Name() != row.name {
			t.Errorf("%+v: %q waits for %q, and for the gate for %q, want %q and %q", row.route, row.route.Name(), row.route.LimitKey(), got, row.name, row.want)
		}
	}
}
