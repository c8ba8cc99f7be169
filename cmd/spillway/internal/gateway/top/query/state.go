package query

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed90641741/spillway"
)

// A State has what is read of the answer to GET /api/v1/state. Blocks that a process does not have are zero.
// All texts are [Plain], all lists are bounded, and all numbers are finite and not negative.
type State struct {
	Name     string    `json:"name"`
	Program  string    `json:"program"`
	Version  string    `json:"version"`
	Time     time.Time `json:"time"`
	Started  time.Time `json:"started"`
	Mode     string    `json:"mode"`
	Draining bool      `json:"draining"`

	Verdict Verdict  `json:"verdict"`
	Mean    Levels   `json:"mean"`
	Counts  *Counts  `json:"counts"`
	Reasons []Reason `json:"reasons"`
	Notices []Notice `json:"notices"`
	Top     struct {
		Routes    List `json:"routes"`
		Customers List `json:"customers"`
		Callers   List `json:"callers"`
	} `json:"top"`
}

// Classes is a count for each criticality, from SHEDDABLE to CRITICAL_PLUS.
type Classes [spillway.Criticalities]uint64

// Sum returns the count of all classes.
func (c Classes) Sum() (n uint64) {
	for _, of := range c {
		n += of
	}
	return n
}

// Counts are requests since the start of a process.
type Counts struct {
	Offered uint64 `json:"offered"`
	Ended   struct {
		Served           Classes `json:"served"`
		Late             Classes `json:"late"`
		Failed           Classes `json:"failed"`
		Rejected         Classes `json:"rejected"`
		RejectedUpstream Classes `json:"rejected_upstream"`
		GoneWaiting      Classes `json:"client_gone_waiting"`
		GoneSent         Classes `json:"client_gone_sent"`
	} `json:"ended"`
	Would Classes `json:"would_reject"`
}

// Accounts returns the counts of [Counts].Ended in their order.
func (c *Counts) Accounts() []*Classes {
	e := &c.Ended
	return []*Classes{&e.Served, &e.Late, &e.Failed, &e.Rejected, &e.RejectedUpstream, &e.GoneWaiting, &e.GoneSent}
}

// Verdict is what a process says of itself.
type Verdict struct {
	Level    string `json:"level"` // idle, ok, warn, bad
	Kind     string `json:"kind"`
	Headline string `json:"headline"`
	Do       string `json:"do"`
}

// Levels are figures that cannot be added up over processes.
type Levels struct {
	P99      *float64 `json:"p99_ms"`
	InFlight float64  `json:"in_flight"`
	Waiting  float64  `json:"waiting"`
	Limit    *float64 `json:"limit"`
	Stalled  float64  `json:"stalled"`
}

// A Reason is a reason for which requests were rejected or lost, with its counts since the start.
type Reason struct {
	Policy  string                          `json:"policy"`
	Outcome string                          `json:"outcome"`
	Reason  string                          `json:"reason"`
	Mode    string                          `json:"mode"`
	Words   string                          `json:"words"`
	Do      string                          `json:"do"`
	Total   [spillway.Criticalities]float64 `json:"total"`
}

// A Notice is a condition that an operator should know about.
type Notice struct {
	Headline string `json:"headline"`
	Text     string `json:"text"`
}

// A List has the names with most rejections of the last minutes.
type List struct {
	Rows   []Row  `json:"rows"` // the most frequent first
	Others uint64 `json:"others"`
}

// A Row counts the rejections of a name.
type Row struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Class  string `json:"class"`
	Mode   string `json:"mode"`
	Count  uint64 `json:"count"`
}

// What is kept of an answer.
const (
	mostReasons = 1024 // more than there are: a reason that is left out at times would seem to grow
	mostRows    = 100
	mostNotices = 16
	maxName     = 128 // bytes of a name, and
	maxText     = 512 // of a sentence
	maxNumber   = 1e15
)

// tidy bounds everything in an answer, and makes its texts plain.
func (s *State) tidy() {
	names(&s.Name, &s.Program, &s.Version, &s.Mode, &s.Verdict.Level, &s.Verdict.Kind)
	sentences(&s.Verdict.Headline, &s.Verdict.Do)
	s.Reasons = slices.Clone(s.Reasons[:min(mostReasons, len(s.Reasons))])
	for i := range s.Reasons {
		r := &s.Reasons[i]
		names(&r.Policy, &r.Outcome, &r.Reason, &r.Mode)
		sentences(&r.Words, &r.Do)
		for class := range r.Total {
			bound(&r.Total[class])
		}
	}
	s.Notices = slices.Clone(s.Notices[:min(mostNotices, len(s.Notices))])
	for i := range s.Notices {
		sentences(&s.Notices[i].Headline, &s.Notices[i].Text)
	}
	for _, list := range []*List{&s.Top.Routes, &s.Top.Customers, &s.Top.Callers} {
		if len(list.Rows) > mostRows {
			list.Others = max(list.Others, 1) // the list has more
			list.Rows = slices.Clone(list.Rows[:mostRows])
		}
		for i := range list.Rows {
			r := &list.Rows[i]
			names(&r.Name, &r.Reason, &r.Class, &r.Mode)
		}
	}
	s.Mean.tidy()
}

func (l *Levels) tidy() {
	for _, v := range []*float64{l.P99, &l.InFlight, &l.Waiting, l.Limit, &l.Stalled} {
		if v != nil {
			bound(v)
		}
	}
}

func bound(v *float64) { *v = min(max(*v, 0), maxNumber) }

func names(all ...*string) {
	for _, text := range all {
		*text = Plain(*text, maxName)
	}
}

func sentences(all ...*string) {
	for _, text := range all {
		*text = Plain(*text, maxText)
	}
}

// lastPlain is the last character that is shown as it is: Latin, Greek and Cyrillic, which are written from left to
// right, with a column for each character.
const lastPlain = '\u052f'

// Plain returns a text for a terminal: each character takes one column and has no other effect. Other characters are
// written as \u202e. A text of more than most bytes ends with "…".
func Plain(text string, most int) string {
	var b strings.Builder
	for i, r := range text {
		if i >= most {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError:
			b.WriteString("?")
		case isPlain(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// isPlain reports whether a character is shown as it is. Marks would join the character before them.
func isPlain(r rune) bool {
	return strings.ContainsRune("–—…≥µ→’“”", r) || r <= lastPlain && strconv.IsPrint(r) && !unicode.IsMark(r)
}
