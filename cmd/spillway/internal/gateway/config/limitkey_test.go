package config

import "testing"

// TestLimitKey has routes that share a limit, and one that does not.
func TestLimitKey(t *testing.T) {
	for _, row := range []struct {
		route Route
		want  string
	}{
		{Route{Cluster: "shop"}, "shop"},
		{Route{Cluster: "shop", Host: "a.example", Path: "/x", Methods: []string{"GET", "PUT"}}, "shop: a.example/x GET,PUT"},
		{Route{Cluster: "shop", Path: "/x", Key: "db"}, "shop: db"},
		{Route{Cluster: "shop", Path: "/y", Methods: []string{"GET"}, Key: "db"}, "shop: db"},
		{Route{Cluster: "other", Path: "/x", Key: "db"}, "other: db"},
	} {
		if got := row.route.LimitKey(); got != row.want {
			t.Errorf("%+v: %q, want %q", row.route, got, row.want)
		}
	}
}
