package logs

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/loglimit"
)

// A Record is the line of one request. Text that clients choose is cut.
type Record struct {
	Time      time.Time `json:"time"`
	Account   string    `json:"account"`
	Reason    string    `json:"reason,omitempty"` // of a rejection
	Listener  string    `json:"listener"`
	Cluster   string    `json:"cluster,omitempty"`
	Route     string    `json:"route,omitempty"`
	Method    string    `json:"method"`
	Path      string    `json:"path"` // without the query
	Status    int       `json:"status"`
	Bytes     int64     `json:"bytes"` // of the body of the answer
	Class     string    `json:"class"`
	Level     int       `json:"level,omitempty"`    // of the task within the class, 1 to 128; none where no gate was asked
	Progress  int       `json:"progress,omitempty"` // calls of the task that were served before
	Customer  string    `json:"customer,omitempty"`
	Caller    string    `json:"caller,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
	TraceID   string    `json:"trace_id,omitempty"`
	Retried   bool      `json:"retried"`
	Duration  float64   `json:"duration_ms"`
	Wait      *float64  `json:"wait_ms,omitempty"`     // before it was sent; none if it was not
	Upstream  *float64  `json:"upstream_ms,omitempty"` // from then to the head of the answer

	// Of a rejection here: the policy, what it measured and what it allows, as a decision has them.
	Policy   string   `json:"policy,omitempty"`
	Measured *float64 `json:"measured,omitempty"`
	Limit    float64  `json:"limit,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	// Setting names the limit of several, such as unlisted_total of a quota.
	Setting string `json:"setting,omitempty"`
	// Settings are the fields of the configuration that a rejection depends on, such as clusters[web].quota.
	Settings string `json:"settings,omitempty"`

	AnsweredBy string `json:"answered_by,omitempty"` // proxy or upstream: whose the status is; empty without an answer
	Error      string `json:"error,omitempty"`       // what failed, without anything that the upstream has sent
	Endpoint   string `json:"endpoint,omitempty"`    // of the last attempt
	Attempts   int    `json:"attempts,omitempty"`    // that were sent

	LeftOut uint64 `json:"left_out"` // sampled lines before this one that are missing
}

// Who has answered a request.
const (
	ByProxy    = "proxy"
	ByUpstream = "upstream"
)

// Set copies what a decision says of a request, and of its rejection if it has a policy. Reason must be set.
func (r *Record) Set(d *decisions.Decision) {
	r.Listener, r.Cluster, r.Route, r.Customer, r.Caller = d.Listener, d.Cluster, d.Route, d.Customer, d.Caller
	r.RequestID, r.TraceID = d.RequestID, d.TraceID
	r.Policy, r.Measured, r.Limit, r.Unit, r.Setting = d.Policy, d.Measured, d.Limit, d.Unit, d.Setting
	if d.Policy != "" {
		because := *d
		because.Reason = r.Reason
		r.Settings = strings.Join(because.Settings(), ", ")
	}
}

// A AccessLog is an access log; make one with [OpenAccessLog]. It is safe for concurrent use.
type AccessLog struct {
	sample, lost float64 // shares
	rate         *loglimit.Rate
	file         file
	queue        *Queue
}

// OpenAccessLog opens the log that c describes. c must have its defaults; for nil OpenAccessLog returns nil. The
// log must be closed.
func OpenAccessLog(c *config.Access) (*AccessLog, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // no access log
	}
	l := &AccessLog{sample: c.Sample, lost: c.SampleLost}
	var err error
	if l.rate, err = loglimit.NewRate(c.Rate); err != nil {
		return nil, fmt.Errorf("log.access: %w", err)
	}
	l.file = file{name: c.File, most: c.MaxBytes}
	if err := l.file.open(); err != nil {
		return nil, fmt.Errorf("log.access.file: %w", err)
	}
	l.queue = NewQueue(l.write, l.file.close)
	return l, nil
}

// Samples reports whether to write the line of a request that ended in an account.
func (l *AccessLog) Samples(now time.Time, a accounts.Account) bool {
	share := l.lost
	if a == accounts.Served {
		share = l.sample
	}
	if share < 1 && rand.Float64() >= share {
		return false
	}
	return l.rate.Admit(now)
}

// Write queues a line, or drops it.
func (l *AccessLog) Write(r *Record) {
	before := l.rate.Reset()
	r.LeftOut = before
	line, err := json.Marshal(r)
	if err == nil && l.queue.Add(append(line, '\n')) {
		return
	}
	l.rate.Lose(before + 1)
}

func (l *AccessLog) write(line []byte) error {
	err := l.file.write(line)
	if err != nil {
		l.rate.Lose(1)
	}
	return err
}

// Stats says whether lines are being lost. A nil AccessLog loses none.
func (l *AccessLog) Stats() Stats {
	if l == nil {
		return Stats{}
	}
	return l.queue.Stats()
}

// Close writes the queued lines, for two seconds at most, and closes the file. On nil it does
// nothing. It must be called once.
func (l *AccessLog) Close() {
	if l != nil {
		l.queue.Close()
	}
}

// A file is the file of a log. Only one goroutine uses it.
type file struct {
	name string // empty: the standard output
	most int64  // bytes; 0: it cannot be full
	size int64
	to   io.Writer
	own  *os.File // nil: the standard output
	torn bool     // the last line is not complete
}

func (f *file) open() error {
	if f.name == "" {
		f.to = os.Stdout
		return nil
	}
	own, err := os.OpenFile(f.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	info, err := own.Stat()
	if err != nil {
		_ = own.Close() // nothing was written
		return err
	}
	if f.own, f.to, f.size = own, own, info.Size(); !info.Mode().IsRegular() { // a pipe, or a terminal
		f.most = 0
	}
	return nil
}

// write writes a line. A part of one, on a full disk, counts as bytes of the file.
func (f *file) write(line []byte) error {
	if f.name != "" && (f.own == nil || f.most > 0 && f.size+int64(len(line)) > f.most) {
		if err := f.turn(); err != nil {
			return err
		}
	}
	if f.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := f.to.Write(line)
	f.size += int64(n)
	f.torn = f.torn && n == 0 || n > 0 && n < len(line)
	return err
}

// turn renames the file and opens a new one. If that fails, nothing is written until it
// succeeds.
func (f *file) turn() error {
	f.close()
	if f.size > 0 {
		if err := os.Rename(f.name, f.name+".1"); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return f.open()
}

func (f *file) close() {
	if f.own != nil {
		_ = f.own.Close() // each write was checked
		f.own = nil
	}
}
