package accounts

import (
	"fmt"
	"io"

	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// Write writes the requests and the MongoDB commands by outcome, for [textpage.Aligned]. The accounts and
// the requests in progress add up to the offered requests.
func (t *Totals) Write(w io.Writer) {
	textpage.Row(w, "ACCOUNT", "REQUESTS", "OF THEM RETRIED")
	for a := range Count {
		textpage.Row(w, Account(a), t.Of(Account(a)), t.Retried[a])
	}
	textpage.Row(w, "in progress", t.Offered-t.Sum(), "")
	textpage.Row(w, "offered", t.Offered, "")
	fmt.Fprintln(w)
	textpage.Row(w, "REJECTED HERE", "REQUESTS")
	for reason, n := range t.Rejected {
		if n > 0 {
			textpage.Row(w, Reason(reason), n)
		}
	}
}
