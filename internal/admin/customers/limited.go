package customers

import (
	"fmt"
	"strings"

	"github.com/seed90641741/spillway/internal/admin/human"
)

// Limited returns the customers with rejections.
func Limited(all []Customer) (names []string) {
	for i := range all {
		if c := &all[i]; c.RejectedRate > 0 && !c.Unlisted {
			names = append(names, c.Customer)
		}
	}
	return names
}

// mostNamed is how many customers AtTheLimit names.
const mostNamed = 3

// AtTheLimit is a sentence that names customers with rejections, with a space in front; it is empty if there are none.
func AtTheLimit(all []Customer) string {
	names := Limited(all)
	if len(names) == 0 {
		return ""
	}
	more := ""
	if n := len(names) - mostNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf(" %s at the limit: %s%s.", human.Counted(len(names), "customer"), strings.Join(names[:min(mostNamed, len(names))], ", "), more)
}
