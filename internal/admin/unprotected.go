package admin

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/runbook"
)

// unprotected reports whether gates that observe would help against a condition if they enforced. The rejections of a limit
// that does not depend on load are no such help in a proxy; a program has set the limit itself.
func (s *State) unprotected(kind string) bool {
	f := &s.Mean
	switch kind {
	case runbook.LimitUnknown:
		return s.Mode == spillway.ModeObserve && f.Stalled < starvedShare
	case runbook.ClientsGone, runbook.AnswersLate:
		return s.Mode == spillway.ModeObserve && f.Stalled < starvedShare && f.Would.sum() > 0
	case "":
		return f.Stalled < starvedShare && f.matters(f.Would.sum(), rejectedShare) && (s.Program == library || s.limitOf(spillway.ModeObserve) == "")
	}
	return false
}

// enforceIt returns how gates that observe are set to enforce. What is to be typed is between backquotes.
func (s *State) enforceIt() string {
	switch {
	case s.Program == library:
		return "Set ShedMode, and the modes of the other gates, to `spillway.ModeEnforce`, and call Update of the server."
	case s.Mode == spillway.ModeObserve:
		return "Run `spillway mode enforce`: gates then let in what can be answered, in place of all. It first prints what it will reject, and asks; " +
			"`spillway mode file` undoes it."
	}
	return "Set the mode of the gates that observe to enforce: /debug/config lists them."
}
