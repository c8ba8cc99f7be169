package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
)

// WithMode returns a copy of c with another mode, and the gates that keep their own, as
// "clusters[shop].shed.mode: observe". A gate keeps a mode that does less: off does less than
// observe, and observe less than enforce. So with [spillway.ModeObserve] no gate rejects, and
// [spillway.ModeEnforce] changes no gate that is to observe.
func (c *Config) WithMode(mode spillway.Mode) (with *Config, kept []string) {
	with = Clone(c)
	visit("", reflect.ValueOf(with), func(path string, v reflect.Value, _ reflect.StructTag) {
		m, ok := reflect.TypeAssert[Mode](v)
		if !ok {
			return
		}
		if m.Or(mode) < mode {
			v.SetString(mode.String())
		} else if strings.HasSuffix(path, ".mode") && m != "" && string(m) != mode.String() {
			kept = append(kept, path+": "+string(m))
		}
	})
	slices.Sort(kept)
	with.Mode = Mode(mode.String())
	return with, kept
}
