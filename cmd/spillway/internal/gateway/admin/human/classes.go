package human

import (
	"strings"

	"github.com/seed90641741/spillway"
)

// ClassShares returns the share of each class that was rejected, the lowest first: "81 % of
// SHEDDABLE, none of CRITICAL". Classes without requests are left out.
func ClassShares(rejected, ended [spillway.Criticalities]float64) string {
	var parts, none []string
	for class, came := range ended {
		name := (spillway.Criticality(class) + spillway.Sheddable).String()
		switch {
		case came <= 0:
		case rejected[class] <= 0:
			none = append(none, name)
		default:
			parts = append(parts, Percent(min(1, rejected[class]/came))+" of "+name)
		}
	}
	if len(none) > 0 {
		parts = append(parts, "none of "+Listed(none))
	}
	return strings.Join(parts, ", ")
}
