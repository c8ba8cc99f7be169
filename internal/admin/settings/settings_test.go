package settings_test

import (
	"slices"
	"testing"

	"github.com/seed90641741/spillway/internal/admin/settings"
)

// TestExemptRoutes: an exempt route is no cause of what happened to requests of its cluster, though it has the setting.
func TestExemptRoutes(t *testing.T) {
	all := []settings.Setting{
		{Field: "routes[0].path", Value: "/healthz"}, {Field: "routes[0].cluster", Value: "shop"}, {Field: "routes[0].exempt", Value: "true"}, {Field: "routes[0].timeout", Value: "1s"},
		{Field: "routes[1].path", Value: "/cart"}, {Field: "routes[1].cluster", Value: "shop"}, {Field: "routes[1].exempt", Value: "false"},
		{Field: "routes[2].cluster", Value: "shop"}, {Field: "routes[2].timeout", Value: "2s"},
	}
	got := settings.Of([]string{"routes[].timeout"}, []string{"shop"}, all)
	if want := []settings.Field{{Name: "routes[2].timeout", Value: "2s"}}; !slices.Equal(got, want) {
		t.Errorf("the fields are %v, want %v", got, want)
	}
	got = settings.Of([]string{"routes[].timeout"}, []string{"shop"}, all[:7])
	if want := []settings.Field{{Name: "routes[1].timeout"}}; !slices.Equal(got, want) {
		t.Errorf("without a route that sets it the fields are %v, want %v", got, want)
	}
}
