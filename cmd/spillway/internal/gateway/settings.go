package gateway

import (
	"maps"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// Settings returns the fields of a configuration, as it is given and with its defaults.
func Settings(given, defaulted any) (all []settings.Setting) {
	named := maps.Collect(config.Values("", given))
	for field, value := range config.Values("", defaulted) {
		_, ok := named[field]
		all = append(all, settings.Setting{Field: field, Value: value, Given: ok})
	}
	return all
}
