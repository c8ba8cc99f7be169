package admin

import (
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/limits"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// A Source is what the server shows: a proxy, a service of quotas, or the servers and clients of a program that uses the
// library. Its methods are called by several goroutines at once, and must not wait for requests.
type Source interface {
	// Levels returns the levels at the time now. It is called by one goroutine.
	Levels(now time.Time) Levels
	// Ready returns why the program cannot serve clients, nil if it can.
	Ready() error
}

// A Program has a configuration that the server shows and changes. Its methods are called as those of a Source.
type Program interface {
	// Settings returns the configuration in use, with its defaults. The caller must not change it.
	Settings() []settings.Setting
	// SetMode sets the mode of all gates until the next reload of the configuration. It returns
	// the gates that keep a configured mode, as it does less, with that mode.
	SetMode(mode spillway.Mode) (kept []string, err error)
	// Reload reads the configuration again, as SIGHUP does.
	Reload() error
}

// Levels are the current limits, queues and budgets of a proxy.
type Levels struct {
	Mode      spillway.Mode        `json:"mode"`     // of gates that have none of their own
	Override  *Override            `json:"override"` // nil: the mode is that of the configuration
	Draining  bool                 `json:"draining"` // it ends, and accepts nothing new
	Notices   []Notice             `json:"notices"`  // the worst first; a State has more
	Changes   []Change             `json:"changes"`  // the latest, the oldest first; likewise
	Listeners []Listener           `json:"listeners"`
	Gates     []Gate               `json:"gates"`
	Clusters  []Cluster            `json:"clusters"`
	Tuned     []Tuned              `json:"tuned,omitempty"`
	Mongo     []Count              `json:"mongo,omitempty"`
	Quotas    []quotastats.Stats   `json:"quotas,omitempty"`
	Customers []customers.Customer `json:"customers,omitempty"` // with most use, and with most rejections
	Logs      []Log                `json:"logs,omitempty"`
	Service   *quotastats.Service  `json:"service,omitempty"` // nil: this is the proxy
}

// A Log is a log that the proxy writes.
type Log struct {
	Name string `json:"name"` // program or access
	Lost uint64 `json:"lost"` // lines that could not be written, since the start of the log
}

// A Count is a counter of a MongoDB listener.
type Count struct {
	Listener string  `json:"listener"`
	Name     string  `json:"name"` // as in the serverStatus of a MongoDB server, or after "proxy."
	Value    float64 `json:"value"`
	Level    bool    `json:"level"` // it can fall
}

// An Override is a manual change that is not in the configuration.
type Override struct {
	Field string    `json:"field"` // of the configuration
	Value string    `json:"value"` // in use
	File  string    `json:"file"`  // what the configuration says
	Since time.Time `json:"since"`
}

// A Listener is an address that clients connect to.
type Listener struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Open     int    `json:"open"`     // connections
	Rejected uint64 `json:"rejected"` // connections that were reset, since the start
	// RejectedBy has the same connections by the setting that they were reset for.
	RejectedBy resets.Counts `json:"rejected_by"`
	Mongo      bool          `json:"mongo,omitempty"` // clients are drivers of MongoDB
	// Clients counts requests, including requests that wait for their client; nil for
	// MongoDB.
	Clients *Clients `json:"clients,omitempty"`
}

// Clients are the requests of a listener.
type Clients struct {
	Requests int    `json:"requests"` // including those that wait for their client
	Waiting  int    `json:"waiting"`  // of them
	Evicted  uint64 `json:"evicted"`  // exchanges and connections, since the start
	Rejected uint64 `json:"rejected"` // requests, at the cap, since the start
}

// A Gate admits the requests of a listener to a cluster.
type Gate struct {
	Listener string `json:"listener"`
	Cluster  string `json:"cluster"`

	Admitted   uint64 `json:"admitted"`   // requests let in, since the start
	Unlabelled uint64 `json:"unlabelled"` // requests without a criticality, since the start

	InFlight int           `json:"in_flight"` // requests that were let in and have not ended
	Peak     int           `json:"peak"`      // the maximum of InFlight plus Waiting since the last sample; in a State, in the last minute
	Limit    float64       `json:"limit"`     // that the shedder has found; 0: it is off
	Bound    bool          `json:"bound"`     // the limit was reached recently
	Unknown  bool          `json:"unknown"`   // requests end and none is answered: one at a time is let in
	Adaptive bool          `json:"adaptive"`  // the shedder finds the limit
	Least    float64       `json:"least"`     // bounds of the limit; 0: none
	Most     float64       `json:"most"`
	Waiting  int           `json:"waiting"`  // for a place or for a token
	Waits    Waits         `json:"waits"`    // for a token
	Baseline time.Duration `json:"baseline"` // the recent minimum latency
	Busy     float64       `json:"busy"`     // utilization of this process, of its target

	RejectedRatio [spillway.Criticalities]float64 `json:"rejected_ratio"` // recent share, by class
	RetryShare    float64                         `json:"retry_share"`    // of what comes in
	DontRetry     bool                            `json:"dont_retry"`     // rejections say so

	Keys []limits.Key `json:"keys,omitempty"` // those with a limit, the busiest first
}

// Waits counts the waits that have ended, and their total time.
type Waits struct {
	Count uint64        `json:"count"`
	Total time.Duration `json:"total"`
}

// A Cluster has the levels of an upstream.
type Cluster struct {
	Name string `json:"name"`

	InFlight    int `json:"in_flight"`     // attempts
	MaxInFlight int `json:"max_in_flight"` // 0: no limit

	Throttle [spillway.Criticalities]float64 `json:"throttle"` // probability of a rejection, by class

	Retries uint64  `json:"retries"` // whether they are on: see Budget; granted since the start
	Budget  *Budget `json:"budget"`  // nil: nothing is retried

	Queue     *Queue           `json:"queue"`           // of a batch cluster
	Costs     []customers.Cost `json:"costs,omitempty"` // of requests, as learned
	Endpoints []Endpoint       `json:"endpoints"`

	Rejected float64 `json:"rejected"` // requests for it that were rejected here, per second; set in a State
}

// Down returns the endpoints that get no requests.
func (x *Cluster) Down() []Endpoint {
	return slices.DeleteFunc(slices.Clone(x.Endpoints), func(e Endpoint) bool { return e.Down == "" })
}

// A Budget is a retry budget, in retries.
type Budget struct {
	Left     float64 `json:"left"`
	Capacity float64 `json:"capacity"`
}

// A Queue is the waiting queue of a batch cluster.
type Queue struct {
	Busy    int   `json:"busy"`
	Places  int   `json:"places"`
	Waiting int   `json:"waiting"`
	Waits   Waits `json:"waits"`
}

// An Endpoint is an address of a cluster.
type Endpoint struct {
	Address  string        `json:"address"`
	InFlight int           `json:"in_flight"`
	Attempts uint64        `json:"attempts"` // since the start
	Errors   uint64        `json:"-"`        // of them, failed ones
	Answers  uint64        `json:"-"`        // of them, those with an answer
	Took     time.Duration `json:"-"`        // all answers
	Down     string        `json:"down"`     // why it gets no requests; empty: it does

	// A State sets these.
	Rate    float64 `json:"rate"`       // attempts per second
	Failing float64 `json:"errors"`     // failed ones per second
	Latency float64 `json:"latency_ms"` // mean time to the head of an answer; 0: there was none
}

// A Tuned is a limit that tune moves.
type Tuned struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	Moves []Move  `json:"moves"` // the latest first
}

// A Move is one change of a tuned limit.
type Move struct {
	Time time.Time `json:"time"`
	From float64   `json:"from"`
	To   float64   `json:"to"`
	Why  string    `json:"why"`
}
