package drill

import (
	"context"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
	"github.com/seed90641741/spillway/internal/admin"
)

// A Page is what the page for operators of the protected server said at one time.
type Page struct {
	At    float64      `json:"at_s"`
	State *admin.State `json:"state"`           // null: the page did not answer
	Error string       `json:"error,omitempty"` // why not
}

// beforeEnd is how long before the end of the step the page is read.
const beforeEnd = 200 * time.Millisecond

// readPage reads the page of b at the end of the step of a run that began at start. It returns nil if b has none, or if ctx
// ends before.
func (d *drill) readPage(ctx context.Context, b *process.Process, start time.Time) *Page {
	at := seconds(d.result.Settings.Phases[1].End) - beforeEnd
	if b.Page == "" || !sleepUntil(ctx, start.Add(at)) {
		return nil
	}
	p := &Page{At: at.Seconds()}
	var err error
	if p.State, err = b.ReadPage(ctx); err != nil {
		p.Error = err.Error()
	}
	return p
}
