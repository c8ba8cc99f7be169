// Package config reads the configuration files of "spillway proxy" and "spillway quota", which are YAML or JSON.
// Parsing is strict; an error has the field, the line and the text around it. Missing
// fields have defaults. For optional limits, a negative value means no limit.
package config

import (
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
)

// A Config is the configuration of a proxy.
type Config struct {
	Mode         Mode              `yaml:"mode" zero:"observe" jsonschema_description:"Mode of gates that do not set one. The default is observe: gates decide and report, but reject nothing."`
	Listeners    []Listener        `yaml:"listeners" jsonschema:"anyof_required=http" jsonschema_description:"Where clients connect to."`
	Clusters     []Cluster         `yaml:"clusters" jsonschema:"anyof_required=http" jsonschema_description:"Where requests go."`
	Routes       []Route           `yaml:"routes" jsonschema_description:"Which requests go where; the first that matches counts. Without any, all go to the only cluster."`
	MaxBuffered  int64             `yaml:"max_buffered_bytes" jsonschema_description:"Bytes of request bodies that the process keeps at once, to read short bodies before admission, and for retries. Beyond it bodies are streamed and not sent again. 0 is 67108864, negative is no limit."`
	DrainTimeout time.Duration     `yaml:"drain_timeout" zero:"30s" allowed:"not negative" jsonschema_description:"Drain timeout for in-flight requests when the proxy or a listener ends; 0 is 30s."`
	Mongo        []Mongo           `yaml:"mongo" jsonschema:"anyof_required=mongo" jsonschema_description:"Where clients of MongoDB connect to, and what is behind it."`
	Quotas       map[string]Engine `yaml:"quotas" jsonschema_description:"Engines by which proxies share the limits of customers. A quota names one in its field engine."`
	XDS          *XDS              `yaml:"xds" jsonschema_description:"The control plane that sets the limits of clusters that have xds, live."`
	Admin        Admin             `yaml:"admin" jsonschema_description:"Where operators look, and who may make changes."`
	Log          Log               `yaml:"log" jsonschema_description:"What is written to the log, and how."`
	Otel         *Otel             `yaml:"otel" jsonschema_description:"Sends metrics and spans by OTLP. Changes take effect after a restart."`
}

// DefaultAdmin is where operators look if [Admin] says nothing else.
const DefaultAdmin = "127.0.0.1:8001"

// Admin is where operators look, and who may make changes.
type Admin struct {
	Address   string     `yaml:"address" jsonschema_description:"Host and port of the dashboard, of metrics and health, or unix: and the path of a socket; off is none. The default is 127.0.0.1:8001. Changes take effect after a restart."`
	TLS       *ServerTLS `yaml:"tls" jsonschema_description:"TLS for operators. Changes take effect after a restart, those of its files at once."`
	Hosts     []string   `yaml:"hosts" jsonschema_description:"Allowed host names in requests of browsers, in addition to localhost, IP addresses and the host in address."`
	TokenFile string     `yaml:"token_file" file:"true" jsonschema_description:"File with the bearer token for changes over the API, at least 16 characters. Without it changes are rejected."`
	ReadToken string     `yaml:"read_token_file" file:"true" jsonschema_description:"File with the bearer token for reading, other than health and readiness; the token for changes is accepted, too. Without it any client can read the metrics, and customers, endpoints and the configuration are shown over loopback and Unix sockets only."`
}

// Log is what is written to the log, and how.
type Log struct {
	Format string `yaml:"format" zero:"text" jsonschema:"enum=text,enum=json" jsonschema_description:"text, the default, or json."`
	Level  string `yaml:"level" zero:"info" jsonschema:"enum=debug,enum=info,enum=warn,enum=error" jsonschema_description:"Lowest level that is written. The default is info."`
	// Rejections bounds what an overload writes.
	Rejections float64 `yaml:"rejections_per_second" limiter:"true" zero:"1" allowed:"at most 1e6" jsonschema_description:"Lines per second for rejected requests at most, for each reason and class; those left out are counted. 0 is 1, negative is none."`
	Access     *Access `yaml:"access" jsonschema_description:"Writes an access log: a line of JSON for each sampled request."`
}

// Mode is the mode of a gate; empty means the mode of [Config].
type Mode = policyconf.Mode

type (
	// RateLimit has the settings of package ratelimit.
	RateLimit = policyconf.RateLimit
	// Quota has the settings of package quota.
	Quota = policyconf.Quota
	// Limit has the settings of a customer.
	Limit = policyconf.Limit
	// Engine says how proxies share quotas.
	Engine = policyconf.Engine
	// ClientTLS verifies endpoints, and has the certificate of the proxy.
	ClientTLS = policyconf.ClientTLS
	// Attempts has the settings of package attempts.
	Attempts = policyconf.Attempts
	// Shed has the settings of packages shed and concurrency.
	Shed = policyconf.Shed
	// Throttle has the settings of package throttle.
	Throttle = policyconf.Throttle
	// Inflight has the settings of package inflight.
	Inflight = policyconf.Inflight
)

// Class is a criticality as text; empty is none.
type Class string

// A Listener is an address that clients connect to.
type Listener struct {
	Name     string `yaml:"name" jsonschema_description:"For routes and messages; the default is the address."`
	Address  string `yaml:"address" jsonschema:"required" jsonschema_description:"Host and port, such as 127.0.0.1:8080; port 0 is any free one."`
	Boundary string `yaml:"boundary" jsonschema:"enum=edge,enum=internal" jsonschema_description:"edge, the default: anybody may connect, and a request may only lower its class. internal: labels and attempt numbers are believed, up to callers and others."`
	// Callers is by the identity in a client certificate.
	Callers map[string]Class `yaml:"callers" jsonschema_description:"The highest class of each caller, by the name in its certificate with its type, at an internal boundary: uri:spiffe://shop/cart, dns:cart.example.com or cn:cart. A certificate with several URIs has no name."`
	Peers   []string         `yaml:"peers" jsonschema_description:"Networks that may connect, such as 10.0.0.0/8; connections from others are reset. Without any, all may. An internal boundary needs these or tls.client_ca."`
	Others  Class            `yaml:"others" jsonschema_description:"The highest class of all other callers; the default is CRITICAL."`
	Reasons string           `yaml:"rejection_reasons" jsonschema:"enum=none,enum=coarse,enum=full" jsonschema_description:"How much of the reason a rejected client learns, in X-Overload-Reason and in the body: none, coarse (overload or quota) or full (such as queue_full). The default is coarse at an edge and full at an internal boundary."`
	// PreserveRequestID has the name that Envoy uses.
	PreserveRequestID bool `yaml:"preserve_external_request_id" jsonschema_description:"Keep the X-Request-Id that a client sends at an edge. The default is false: each request gets a new one, as any client could send the id of another request. At an internal boundary the id is always kept."`

	MaxTimeout time.Duration `yaml:"max_timeout" allowed:"1ms to 24h" jsonschema_description:"The farthest deadline that a request may name; 0 is 1h."`
	TLS        *ServerTLS    `yaml:"tls" jsonschema_description:"Without it connections are in the clear."`

	MaxConnections int           `yaml:"max_connections" zero:"10000" jsonschema_description:"Open at once. The last quarter is for addresses with less than a quarter of it. When it is reached, the connection that has waited longest for its client is closed; if none waits, one of the address with most, if that has at least double the number of the new client; otherwise the new one is reset. 0 is 10000, negative is no limit. The limit on open files can lower this and max_requests."`
	ConnectionRate RateLimit     `yaml:"connection_rate" jsonschema_description:"Connections per second; more are reset, or wait where queue_depth says so. It has no mode but enforce and off."`
	MaxRequests    int           `yaml:"max_requests" zero:"10000" jsonschema_description:"Concurrent requests, including those that wait for their client, in every mode. The last quarter is for connections with less than a sixteenth and addresses with less than a quarter of it. When it is reached, the request that has waited longest for its client ends. 0 is 10000, negative is no limit."`
	MaxStreams     int           `yaml:"max_streams" zero:"250" allowed:"1 to 1048576" jsonschema_description:"Requests at once on a connection of HTTP/2; 0 is 250."`
	MaxHeaderBytes int           `yaml:"max_header_bytes" zero:"65536" allowed:"1024 to 16777216" jsonschema_description:"0 is 65536."`
	MaxBodyBytes   int64         `yaml:"max_body_bytes" allowed:"not negative" jsonschema_description:"Of a request; bodies are not kept in memory. 0 is no limit."`
	HeaderTimeout  time.Duration `yaml:"header_timeout" zero:"10s" allowed:"not negative" jsonschema_description:"Time for the head of a request; 0 is 10s."`
	BodyTimeout    time.Duration `yaml:"body_timeout" zero:"30s" jsonschema_description:"Total wait for the body of a request, beyond the time that min_rate allows for what has come; 0 is 30s, negative is no limit. Calls of gRPC have stream_idle_timeout instead."`
	WriteTimeout   time.Duration `yaml:"write_timeout" zero:"30s" jsonschema_description:"Total wait for a client to receive its answer, beyond the time that min_rate allows for what has gone; 0 is 30s, negative is no limit."`
	MinRate        int64         `yaml:"min_rate" zero:"240" jsonschema_description:"Bytes per second that a client must send and receive while the proxy waits for it; 0 is 240, negative is none."`
	MaxBodyTime    time.Duration `yaml:"max_body_time" zero:"1h" jsonschema_description:"Total wait for the body of a request, however fast it comes; 0 is 1h, negative is no limit. Calls of gRPC have none."`
	StreamIdle     time.Duration `yaml:"stream_idle_timeout" zero:"5m" jsonschema_description:"How long a call of gRPC that its client has not ended or does not read, an upgraded connection, or a stream of events of a request with a deadline may transfer nothing in either direction; 0 is 5m, negative is no limit."`
	IdleTimeout    time.Duration `yaml:"idle_timeout" zero:"2m" allowed:"not negative" jsonschema_description:"Time of a connection between requests; 0 is 2m."`
	HandshakeCost  float64       `yaml:"handshake_cost" allowed:"0 to 1000000" jsonschema_description:"What a new connection costs the customer of its first request, in requests of quota. 0 is nothing."`
	IdleCost       float64       `yaml:"idle_cost" allowed:"0 to 1000000" jsonschema_description:"What each idle second of a connection costs the customer of its latest request, in requests of quota. 0 is nothing."`
}

// ServerTLS is how a listener proves who it is, and whether clients have to.
type ServerTLS struct {
	Certificate string `yaml:"certificate" file:"true" jsonschema:"required" jsonschema_description:"File with the chain, in PEM."`
	Key         string `yaml:"key" file:"true" jsonschema:"required" jsonschema_description:"File with its key, in PEM."`
	ClientCA    string `yaml:"client_ca" file:"true" jsonschema_description:"CA certificates that verify client certificates, in PEM. If set, clients must have a certificate."`
	Optional    bool   `yaml:"optional" jsonschema_description:"Clients without a certificate may connect, too."`
}

// A Cluster is a group of endpoints that serve the same requests.
type Cluster struct {
	Name            string        `yaml:"name" jsonschema:"required"`
	Endpoints       []string      `yaml:"endpoints" jsonschema:"required" jsonschema_description:"Host and port of each."`
	Protocol        string        `yaml:"protocol" zero:"auto" jsonschema:"enum=auto,enum=http1,enum=http2" jsonschema_description:"auto, the default: HTTP/2 for calls of gRPC, HTTP/1.1 for the rest."`
	TLS             *ClientTLS    `yaml:"tls" jsonschema_description:"Without it connections are in the clear."`
	MaxConnections  int           `yaml:"max_connections" zero:"1024" jsonschema_description:"To each endpoint and for each protocol; more requests wait. 0 is 1024, negative is no limit."`
	IdleTimeout     time.Duration `yaml:"idle_timeout" zero:"4s" allowed:"not negative" jsonschema_description:"How long a connection is kept unused: less than the endpoint keeps it, or requests meet connections that are being closed; 0 is 4s."`
	ConnectTimeout  time.Duration `yaml:"connect_timeout" zero:"5s" allowed:"not negative" jsonschema_description:"0 is 5s."`
	ResponseTimeout time.Duration `yaml:"response_timeout" allowed:"not negative" jsonschema_description:"How long an endpoint may take to begin its answer; 0 is no limit but the deadline of the request."`

	Health *Health `yaml:"health" jsonschema_description:"Health checks of endpoints. Without them only traffic reveals failures. Failed endpoints are skipped while others are healthy."`

	Balance          Balance           `yaml:"balance" jsonschema_description:"How the endpoint of a request is chosen: the less busy of two, and none that asked to be left alone."`
	OutlierDetection *OutlierDetection `yaml:"outlier_detection" jsonschema_description:"Ejects endpoints that fail more than others for a while."`

	// What is let in, for each listener by itself.
	RateLimit   RateLimit     `yaml:"rate_limit" jsonschema_description:"Requests per second from each listener."`
	Quota       *Quota        `yaml:"quota" jsonschema_description:"What each customer may use, of each listener."`
	ReportsCost bool          `yaml:"reports_cost" jsonschema_description:"Endpoints report what a request has cost its customer, in the header X-Request-Cost of the answer: 0 to 1e6, in the unit of quota. It replaces the cost of the route. Clients never see the header."`
	LearnCosts  *LearnCosts   `yaml:"learn_costs" jsonschema_description:"The quota charges the processor time of the endpoints that a request takes on average. It is learned from the load reports that balance.load_reports must ask for. Until it is known, and while an endpoint sends no reports, quota.cost is charged."`
	Shed        Shed          `yaml:"shed" jsonschema_description:"Rejects by criticality when the cluster is overloaded. Where the cluster has batch, the default mode is off."`
	Attempts    Attempts      `yaml:"attempts" jsonschema_description:"When rejections say don't retry."`
	RetryAfter  time.Duration `yaml:"retry_after" allowed:"1ms to 1h" jsonschema_description:"Retry-After of rejections; the hint that is sent is this value ±50 %. 0 is 1s."`
	Batch       *Batch        `yaml:"batch" jsonschema_description:"Requests wait for one of few connections, by criticality. Customers, or addresses without one, take turns. Requests whose bodies are still coming have three quarters of the connections. The oldest is answered first, so clients must be patient or few."`

	// What is sent.
	Throttle Throttle `yaml:"throttle" jsonschema_description:"Rejects what the cluster would reject."`
	Inflight Inflight `yaml:"inflight" jsonschema_description:"Limit on attempts in flight to the cluster."`
	Retry    Retry    `yaml:"retry" jsonschema_description:"Which requests are sent again, to another endpoint if there is one."`

	Tune *Tune `yaml:"tune" jsonschema_description:"Moves one of the limits as the cluster gets slower or faster."`

	XDS *ClusterXDS `yaml:"xds" jsonschema_description:"The control plane sets max_requests, max_retries and retry_budget by circuit_breakers, and receives load reports with the rejections. Until it answers, max_requests is 1024. The endpoints are the configured ones."`
}

// Health is how the endpoints of a cluster are checked.
type Health struct {
	Type               string        `yaml:"type" zero:"http" jsonschema:"enum=http,enum=grpc,enum=tcp" jsonschema_description:"http, the default: GET must be answered 2xx. grpc: grpc.health.v1.Health must say SERVING. tcp: there must be a connection."`
	Path               string        `yaml:"path" jsonschema_description:"Of http; the default is /healthz."`
	Host               string        `yaml:"host" jsonschema_description:"The host that http and grpc ask for; the default is the endpoint."`
	Service            string        `yaml:"service" jsonschema_description:"The service that grpc asks for; the default is the whole endpoint."`
	Interval           time.Duration `yaml:"interval" zero:"5s" allowed:"10ms to 24h" jsonschema_description:"Between checks of an endpoint; 0 is 5s."`
	Jitter             float64       `yaml:"jitter" zero:"0.1" allowed:"at most 1" jsonschema_description:"By which share an interval is longer or shorter at most; 0 is 0.1, negative is none."`
	Timeout            time.Duration `yaml:"timeout" zero:"1s" allowed:"1ms to 1h" jsonschema_description:"How long an endpoint may take to answer; 0 is 1s."`
	NoTrafficInterval  time.Duration `yaml:"no_traffic_interval" zero:"60s" allowed:"at most 24h" jsonschema_description:"Between checks of a healthy endpoint that gets no requests; 0 is 60s, negative is interval. With more than 300 endpoints it is longer: at most 5 checks a second. Endpoints that serve requests are not checked."`
	HealthyThreshold   int           `yaml:"healthy_threshold" zero:"2" allowed:"1 or more" jsonschema_description:"How many checks in a row must succeed before an unhealthy endpoint is healthy; 0 is 2. The first check of all decides at once."`
	UnhealthyThreshold int           `yaml:"unhealthy_threshold" zero:"3" allowed:"1 or more" jsonschema_description:"How many in a row must fail before a healthy one is unhealthy; 0 is 3."`
}

// Batch is how requests wait for few connections.
type Batch struct {
	Connections int           `yaml:"connections" zero:"16" jsonschema_description:"To all endpoints together; 0 is 16. Where protocol is auto, one to each endpoint is kept for HTTP/2."`
	Queue       int           `yaml:"queue" zero:"10000" allowed:"1 to 10000000" jsonschema_description:"How many requests may wait; 0 is 10000."`
	MaxWait     time.Duration `yaml:"max_wait" zero:"1m" allowed:"1ms or more" jsonschema_description:"How long; 0 is 1m."`
}

// Retry has the settings of retry.Budgeted, the strategy of clusters. Its default waits are
// shorter than in the library, because clients of the proxy wait for it.
type Retry struct {
	Mode          Mode               `yaml:"mode" jsonschema_description:"Only enforce sends requests again."`
	MaxAttempts   int                `yaml:"max_attempts" sets:"retry.BudgetedConfig.MaxAttempts" jsonschema_description:"Attempts of a request, including the first."`
	Ratio         float64            `yaml:"ratio" sets:"retry.BudgetedConfig.Ratio" jsonschema_description:"Retries for each request at most."`
	Base          time.Duration      `yaml:"base" zero:"25ms" sets:"retry.BudgetedConfig.Backoff.Base" jsonschema_description:"Longest wait before the first retry, doubled before each further one." default:"Zero means 25 ms, negative means none."`
	Max           time.Duration      `yaml:"max" zero:"1s" sets:"retry.BudgetedConfig.Backoff.Max" jsonschema_description:"Longest wait." default:"Zero means 1 s; it must not be negative."`
	MaxRetryAfter time.Duration      `yaml:"max_retry_after" zero:"1s" sets:"retry.BudgetedConfig.MaxRetryAfter" jsonschema_description:"Longest hint of an endpoint that is waited for." default:"Zero means 1 s, negative means any."`
	Budget        *policyconf.Budget `yaml:"budget" jsonschema_description:"The budget that pays for retries. By default it holds 1000 times ratio, and starts empty with 30 times ratio on credit."`
	MaxBodyBytes  int64              `yaml:"max_body_bytes" zero:"65536" allowed:"at most 16777216" jsonschema_description:"Longest body that is kept for a retry, if Content-Length announces it or the call is of gRPC; requests with other bodies are sent once. 0 is 65536, negative is none."`
}

// A Route has the cluster and the criticality of the requests that match all its
// conditions.
type Route struct {
	Listeners     []string          `yaml:"listeners" jsonschema_description:"Names; without any, all."`
	Host          string            `yaml:"host" jsonschema_description:"Without a port; *.example.com is all below example.com."`
	Path          string            `yaml:"path" jsonschema_description:"How the path begins: /api/ is all below it. For gRPC, /package.Service/ is one service."`
	Prefix        bool              `yaml:"prefix" jsonschema_description:"An exempt route matches all paths that begin with its path."`
	Exact         bool              `yaml:"exact" jsonschema_description:"The path must be all of the request's."`
	Methods       []string          `yaml:"methods" jsonschema_description:"Without any, all."`
	Headers       map[string]string `yaml:"headers" secret:"true" jsonschema_description:"Their values; * is any."`
	Cluster       string            `yaml:"cluster" jsonschema_description:"Where the requests go; may be left out if there is only one."`
	Key           string            `yaml:"key" jsonschema_description:"What requests of the route wait for, where that is not all of the cluster: a pool, a shard, a cache. Routes of a cluster with the same key share one limit on requests in flight, routes without one that of the cluster. In metrics, logs and pages the key is the name of the route."`
	Criticality   Class             `yaml:"criticality" jsonschema_description:"How much the requests matter; the default is CRITICAL, and SHEDDABLE_PLUS where the cluster has batch."`
	Customer      Customer          `yaml:"customer" jsonschema_description:"On whose behalf a request is made, for quotas and turns."`
	Cost          float64           `yaml:"cost" allowed:"at most 1e+06" jsonschema_description:"What a request costs its customer; at most 1e6. 0 is quota.cost of the cluster, negative is nothing."`
	Timeout       time.Duration     `yaml:"timeout" allowed:"not negative" jsonschema_description:"How long a request may take; 0 is no limit but what the client says. From an upgrade or the beginning of a stream of events (text/event-stream) on, stream_idle_timeout applies instead. A call of gRPC that takes longer ends with DEADLINE_EXCEEDED."`
	BodyTimeout   time.Duration     `yaml:"body_timeout" jsonschema_description:"In place of the listener's; 0 is the listener's."`
	MinRate       int64             `yaml:"min_rate" jsonschema_description:"In place of the listener's; 0 is the listener's."`
	MaxBodyTime   time.Duration     `yaml:"max_body_time" jsonschema_description:"In place of the listener's; 0 is the listener's."`
	StreamIdle    time.Duration     `yaml:"stream_idle_timeout" jsonschema_description:"In place of the listener's; 0 is the listener's."`
	Upgrades      []string          `yaml:"upgrades" jsonschema_description:"Protocols that a connection of HTTP/1.1 may be upgraded to; the default is websocket alone. A request for another goes on without an upgrade (RFC 9110)."`
	LatencyVaries bool              `yaml:"latency_varies" jsonschema_description:"Requests wait for an event, as long polls do: they are never reported as slow."`
	Exempt        bool              `yaml:"exempt" jsonschema_description:"Requests pass all gates of the server's side: for health checks. The path must be given, and be all of the request's, unless prefix is true. At an internal boundary /healthz, /livez, /readyz, /metrics and the health service of gRPC are always exempt."`
}

// Customer is how the customer of a request is identified.
type Customer struct {
	Header string `yaml:"header" jsonschema_description:"The value of this header, which shows up in reports: not a secret. At an edge it needs trusted_header."`
	// Trusted is required because any client can send a header.
	Trusted  bool `yaml:"trusted_header" jsonschema_description:"At an edge, the header is believed: only where something in front of the proxy, such as an authenticating gateway, sets or removes it for every request. Otherwise any client can spend the quota of any customer."`
	Identity bool `yaml:"identity" jsonschema_description:"The name in the certificate of the client, with its type: uri:spiffe://shop/cart, dns:cart.example.com or cn:cart. Without a certificate there is no customer."`
}

// ForUpstream returns the configuration of a proxy with one upstream and defaults
// otherwise.
func ForUpstream(listen, upstream string) *Config {
	return &Config{
		Listeners: []Listener{{Address: listen}},
		Clusters:  []Cluster{{Name: "upstream", Endpoints: []string{upstream}}},
	}
}
