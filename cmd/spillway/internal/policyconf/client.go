package policyconf

import (
	"reflect"
	"strings"
	"time"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/sim"
)

// Throttle has the settings of package throttle.
type Throttle struct {
	Mode          Mode          `yaml:"mode" jsonschema_description:"off, observe or enforce."`
	K             float64       `yaml:"k" sets:"throttle.Config.K" jsonschema_description:"Requests sent for each one that is accepted, before any is rejected here."`
	Window        time.Duration `yaml:"window" sets:"throttle.Config.Window" jsonschema_description:"How long past requests are remembered."`
	ProbeInterval time.Duration `yaml:"probe_interval" sets:"throttle.Config.ProbeInterval" jsonschema_description:"How often a backend that accepts nothing is tried."`
	MinRequests   int           `yaml:"min_requests" sets:"throttle.Config.MinRequests" jsonschema_description:"Requests above k times the accepted ones that are sent before any is rejected here."`
	WholeCluster  bool          `yaml:"whole_cluster" only:"proxy" jsonschema_description:"One throttle for all requests to the cluster. By default up to 256 routes that were served have one each, so that one that fails does not stop the others: a method of gRPC, or the method and first four segments of the path without identifiers."`
}

// Inflight has the settings of package inflight.
type Inflight struct {
	Mode        Mode `yaml:"mode" jsonschema_description:"off, observe or enforce."`
	MaxInFlight int  `yaml:"max_in_flight" sets:"inflight.Config.MaxInFlight" jsonschema_description:"Most requests in flight. While calls offer four fifths of it or more, a class leaves free what higher classes had in flight, or were rejected, in the last 1 to 2 s; and a sixteenth in the minute after a call of a higher class."`
}

// Budget has the settings of package budget.
type Budget struct {
	Capacity     float64 `yaml:"capacity" sets:"budget.Config.Capacity" jsonschema_description:"Tokens that the budget can hold. A retry costs one."`
	Empty        bool    `yaml:"empty" sets:"budget.Config.Empty" jsonschema_description:"The budget starts empty." default:"The default is to start full."`
	Credit       float64 `yaml:"credit" sets:"budget.Config.Credit" jsonschema_description:"Tokens that an empty budget starts with; the first deposits repay them."`
	MinPerSecond float64 `yaml:"min_per_second" sets:"budget.Config.MinPerSecond" jsonschema_description:"Tokens that each second brings."`
}

// Retry has the settings of all strategies of package retry, for scenarios. A file may set
// only the settings of its strategy.
type Retry struct {
	Strategy      sim.Strategy  `yaml:"strategy" jsonschema:"enum=budgeted,enum=aws_standard,enum=mongodb" jsonschema_description:"The default is budgeted."`
	Revision      string        `yaml:"revision" sets:"retry.AWSStandardConfig.Revision retry.MongoDBConfig.Revision" jsonschema_description:"Revision of the specification of an aws_standard or mongodb strategy."`
	MaxAttempts   int           `yaml:"max_attempts" sets:"retry.BudgetedConfig.MaxAttempts retry.AWSStandardConfig.MaxAttempts" jsonschema_description:"Attempts of a request, including the first, of a budgeted or aws_standard strategy."`
	Ratio         float64       `yaml:"ratio" sets:"retry.BudgetedConfig.Ratio" jsonschema_description:"Retries for each request at most, of a budgeted strategy."`
	MaxRetries    int           `yaml:"max_retries" sets:"retry.MongoDBConfig.MaxRetries" jsonschema_description:"Retries of a request of a mongodb strategy after an overload."`
	OtherRetries  int           `yaml:"other_retries" sets:"retry.MongoDBConfig.OtherRetries" jsonschema_description:"Retries of a request of a mongodb strategy before any overload."`
	NoReads       bool          `yaml:"no_reads" sets:"retry.MongoDBConfig.NoReads" jsonschema_description:"A mongodb strategy does not retry reads, as with retryReads=false." default:"The default is false."`
	NoWrites      bool          `yaml:"no_writes" sets:"retry.MongoDBConfig.NoWrites" jsonschema_description:"A mongodb strategy does not retry writes, as with retryWrites=false." default:"The default is false."`
	Base          time.Duration `yaml:"base" sets:"retry.BudgetedConfig.Backoff.Base retry.AWSStandardConfig.Base retry.MongoDBConfig.Backoff.Base" jsonschema_description:"Longest wait before the first retry, doubled before each further one."`
	Max           time.Duration `yaml:"max" sets:"retry.BudgetedConfig.Backoff.Max retry.AWSStandardConfig.MaxBackoff retry.MongoDBConfig.Backoff.Max" jsonschema_description:"Longest wait."`
	OverloadBase  time.Duration `yaml:"overload_base" sets:"retry.AWSStandardConfig.OverloadBase" jsonschema_description:"Longest wait of an aws_standard strategy before the first retry after an overload."`
	MaxRetryAfter time.Duration `yaml:"max_retry_after" sets:"retry.BudgetedConfig.MaxRetryAfter retry.AWSStandardConfig.MaxRetryAfter retry.MongoDBConfig.MaxRetryAfter" jsonschema_description:"Longest hint of the backend that is waited for."`
	Budget        *Budget       `yaml:"budget" jsonschema_description:"In place of the budget that the strategy has by default."`
	Unlimited     bool          `yaml:"unlimited" jsonschema_description:"Every retry is paid for."`
	NoJitter      bool          `yaml:"no_jitter" jsonschema_description:"Each wait is the longest."`
}

// Config returns the strategy and its budget. If a setting is given that the strategy does
// not have, Config returns the name of the setting.
func (r *Retry) Config() (c sim.Retry, foreign string) {
	c = sim.Retry{Strategy: r.Strategy, Unlimited: r.Unlimited, NoJitter: r.NoJitter}
	of := "retry.BudgetedConfig."
	switch r.Strategy {
	case sim.AWSStandard:
		c.AWSStandard, of = Fill[retry.AWSStandardConfig](*r), "retry.AWSStandardConfig."
	case sim.MongoDB:
		c.MongoDB, of = Fill[retry.MongoDBConfig](*r), "retry.MongoDBConfig."
	default: // budgeted, or a name that the simulation rejects
		c.Budgeted = Fill[retry.BudgetedConfig](*r)
	}
	if r.Budget != nil {
		c.Budget = new(Fill[budget.Config](*r.Budget))
	}
	Settings(reflect.ValueOf(*r), func(s Setting) {
		if all := s.Field.Tag.Get("sets"); all != "" && !s.Value.IsZero() && !strings.Contains(all, of) {
			foreign = s.Name
		}
	})
	return c, foreign
}
