package policyconf

import "time"

// RateLimit has the settings of package ratelimit.
type RateLimit struct {
	Mode         Mode     `yaml:"mode" jsonschema_description:"off, observe or enforce."`
	Rate         float64  `yaml:"rate" sets:"ratelimit.Config.Rate" jsonschema_description:"Requests per second in the long run."`
	BurstSeconds float64  `yaml:"burst_seconds" sets:"ratelimit.Config.BurstSeconds" jsonschema_description:"How many seconds of the rate an idle limiter saves up."`
	QueueDepth   int      `yaml:"queue_depth" sets:"ratelimit.Config.QueueDepth" jsonschema_description:"How many requests may wait for a token at once."`
	Exempt       Networks `yaml:"exempt" sets:"ratelimit.Config.Exempt.CIDRs" only:"proxy" jsonschema_description:"Networks without a limit, such as 10.0.0.0/8." default:"Empty means none."`
}

// Quota has the settings of package quota and of its local allocator.
type Quota struct {
	Engine        string           `yaml:"engine" only:"proxy" jsonschema_description:"Name of an entry of quotas, by which proxies share the limits. Without it the limits apply to one listener of one process."`
	Domain        string           `yaml:"domain" only:"proxy" jsonschema_description:"With engine, name of the shared quota: clusters, spillway quota and programs with the same one share it. It must be 1 to 200 bytes without braces." default:"Empty means the domain of the engine, a slash, and the name of the cluster or listener: shop/web."`
	Mode          Mode             `yaml:"mode" jsonschema_description:"off, observe or enforce."`
	BurstSeconds  float64          `yaml:"burst_seconds" sets:"quota.Config.BurstSeconds" jsonschema_description:"How many seconds of its rate an idle customer saves up."`
	Cost          float64          `yaml:"cost" sets:"quota.Config.Cost" jsonschema_description:"What an admitted request costs."`
	MaxUnlisted   int              `yaml:"max_unlisted" sets:"quota.Config.MaxUnlisted" jsonschema_description:"How many customers without a limit by name are counted apart; the others share one count."`
	Capacity      float64          `yaml:"capacity" sets:"quota.LocalConfig.Capacity" jsonschema_description:"Cost per second of all customers together, shared by weight."`
	Customers     map[string]Limit `yaml:"customers" sets:"quota.LocalConfig.Customers" jsonschema_description:"Limits of customers by name." default:"Empty means none."`
	DefaultLimit  Limit            `yaml:"default_limit" sets:"quota.LocalConfig.DefaultLimit" jsonschema_description:"Limit of each other customer, and one for all requests without a customer together." default:"Empty means no limit."`
	UnlistedTotal Limit            `yaml:"unlisted_total" sets:"quota.LocalConfig.UnlistedTotal" jsonschema_description:"Limit of all other customers together, and of requests without a customer." default:"Empty means no limit."`
	Interval      time.Duration    `yaml:"interval" sets:"quota.LocalConfig.Interval" jsonschema_description:"How often the capacity is divided among customers."`
}

// Limit has the settings of a customer.
type Limit struct {
	Rate   float64 `yaml:"rate" sets:"quota.Limit.Rate" jsonschema_description:"Cost per second."`
	Weight float64 `yaml:"weight" sets:"quota.Limit.Weight" jsonschema_description:"Weight where the capacity is shared."`
	Shares Classes `yaml:"shares" sets:"quota.Limit.Shares" jsonschema_description:"The share of the rate that each class and all lower ones together may use."`
}

// Attempts has the settings of package attempts.
type Attempts struct {
	Share         float64       `yaml:"share" sets:"attempts.Config.Share" jsonschema_description:"Share of retries above which rejections say don't retry."`
	Window        time.Duration `yaml:"window" sets:"attempts.Config.Window" jsonschema_description:"How long a request is remembered."`
	FirstAttempts int           `yaml:"first_attempts" sets:"attempts.Config.FirstAttempts" jsonschema_description:"Most first attempts that are remembered."`
	MinRequests   int           `yaml:"min_requests" sets:"attempts.Config.MinRequests" jsonschema_description:"How many requests must be remembered before the share counts."`
}

// Shed has the settings of packages shed and concurrency, and the load that they use.
type Shed struct {
	Mode             Mode           `yaml:"mode" jsonschema_description:"off, observe or enforce."`
	MaxWait          time.Duration  `yaml:"max_wait" sets:"shed.Config.MaxWait" jsonschema_description:"Longest wait in the queue of a request without a deadline. With a deadline it is at most three quarters of the time until then."`
	MinInFlight      int            `yaml:"min_in_flight" sets:"concurrency.Config.MinInFlight" jsonschema_description:"Least value of the adaptive limits on requests in flight."`
	MaxInFlight      int            `yaml:"max_in_flight" sets:"concurrency.Config.MaxInFlight" jsonschema_description:"Most requests in flight, of all keys together."`
	MaxInFlightByKey map[string]int `yaml:"max_in_flight_by_key" sets:"concurrency.Config.MaxInFlightByKey" jsonschema_description:"Most requests in flight of single keys, to limit streams apart from quick calls. For streams take the most that may be open at once; for calls the most per second, times their usual time in seconds, times two. The key of a route with routes[].key is its cluster, a colon, a space and that key (web: streams), of other routes the cluster (web), in a scenario the name of the service."`
	MaxKeys          int            `yaml:"max_keys" sets:"concurrency.Config.MaxKeys" jsonschema_description:"How many keys have an adaptive limit of their own; the others share one."`
	Fixed            bool           `yaml:"fixed" sets:"concurrency.Config.Fixed" jsonschema_description:"max_in_flight is the limit, and nothing is learned." default:"The default is false."`
	Thresholds       Classes        `yaml:"thresholds" sets:"shed.Config.Thresholds" jsonschema_description:"Utilization from which each class begins to be rejected. At 0.05 above it all requests of the class are."`
	Load             Load           `yaml:"load" jsonschema_description:"How the utilization of a process is measured."`
}

// Formula combines the shares of measures to one utilization.
type Formula string

// Check returns an error if the formula has a mistake.
func (f Formula) Check() error {
	_, err := parseCombination(string(f))
	return err
}

// Load has the settings of package load.
type Load struct {
	Interval   time.Duration      `yaml:"interval" sets:"load.Config.Interval" only:"proxy" jsonschema_description:"Least time between two samples."`
	Smoothing  time.Duration      `yaml:"smoothing" sets:"load.Config.Smoothing" only:"proxy" jsonschema_description:"Time constant of the executor load average."`
	Targets    LoadTargets        `yaml:"targets" jsonschema_description:"Values at which a measure has the utilization 1. Measures without a target are only reported."`
	Thresholds map[string]Classes `yaml:"thresholds" sets:"load.Config.Thresholds" only:"proxy" jsonschema_description:"Thresholds of single measures by class, in the unit of the measure, in place of a target: executor, cpu, quota, throttled, memory, scheduling or queue." default:"Empty means none."`
	Combine    Formula            `yaml:"combine" sets:"load.Config.Combine" only:"proxy" jsonschema_description:"How shares of targets make one utilization: max, the default, or a formula such as max(memory, 0.7*cpu + 0.3*executor), of the names of measures, numbers, + - * / and max(), min()." default:"Empty means max."`
}

// LoadTargets are the targets of the measures.
type LoadTargets struct {
	Executor   float64       `yaml:"executor" sets:"load.Config.Targets.Average" only:"proxy" jsonschema_description:"Executor load average: running and runnable goroutines for each processor, smoothed."`
	CPU        float64       `yaml:"cpu" sets:"load.Config.Targets.CPU" jsonschema_description:"Share of the processors that this process uses."`
	Quota      float64       `yaml:"quota" sets:"load.Config.Targets.Quota" only:"proxy" jsonschema_description:"Share of the processor time that the cgroup allows."`
	Throttled  float64       `yaml:"throttled" sets:"load.Config.Targets.Throttled" only:"proxy" jsonschema_description:"Share of the periods in which the cgroup used up its processor time."`
	Memory     float64       `yaml:"memory" sets:"load.Config.Targets.Memory" jsonschema_description:"Share of the memory limit."`
	Scheduling time.Duration `yaml:"scheduling" sets:"load.Config.Targets.Scheduling" only:"proxy" jsonschema_description:"Wait of goroutines for a processor, 99th percentile."`
	Queue      time.Duration `yaml:"queue" sets:"load.Config.Targets.Queue" only:"proxy" jsonschema_description:"Longest wait for admission."`
}
