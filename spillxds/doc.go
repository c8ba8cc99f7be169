// Package spillxds lets a control plane set the limits of any client of Spillway over xDS,
// reports rejections to it, and lets servers report their utilization.
//
// gRPC's own xDS channels have circuit breaking built in, in packages that no other
// module can import. Here the same resources limit a [net/http] client, a plain gRPC
// channel, or any other client that package egress or an [inflight.Limiter] stands
// in front of:
//
//	client, err := spillxds.New(spillxds.Config{})             // GRPC_XDS_BOOTSTRAP
//	users, err := client.Cluster(inflight.Key{Cluster: "users"})
//	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{
//		Egress: users.Egress(egress.Config{}),
//		Base:   users.RoundTripper(nil),
//	})
//
// A plain gRPC channel under circuit breaking as gRFC A32 has it, which counts the
// attempts that are on a connection:
//
//	var limits inflight.Registry
//
//	balancer.Register(spillgrpc.NewBalancer(&limits)) // before the first channel
//	client, err := spillxds.New(spillxds.Config{Registry: &limits})
//	users, err := client.Cluster(inflight.Key{Cluster: "users"})
//	cc, err := grpc.NewClient(target, append(users.DialOptions(), credentials)...)
//
// # Limits
//
// A [Client] watches Cluster resources over ADS, in the state-of-the-world form or
// the incremental one. Of circuit_breakers the first entry of thresholds with the
// priority DEFAULT counts:
//
//	max_requests           limit of the cluster's [inflight.Limiter]; 1024 if not set
//	max_retries            retries under way at once; no limit if not set
//	retry_budget           the same, as max(min_retry_concurrency or 3, budget_percent
//	                       or 20 % of what is in flight); wins over max_retries
//
// Ignored are entries of the priority HIGH, which gRPC does not have;
// max_connections, max_pending_requests, max_connection_pools and
// per_host_thresholds, which bound connections; track_remaining; and
// budget_interval. All must be valid all the same, and [Event.Ignored] says which of
// them a cluster has.
//
// A limit belongs to an inflight.Limiter of an [inflight.Registry], so that all who
// send to the cluster share it, by whatever protocol. What is in flight is kept
// when it changes.
//
// Sources: gRFC A32 as approved, and Envoy's circuit breakers for retries. The
// departures: without max_retries Envoy allows 3 retries, here the retry budget of
// the client's own strategy stays the only bound; and a [Cluster] taken without a
// Service stays on its count when the EDS service of the cluster changes, as a
// client that does not use EDS goes on to send where it sent before.
//
// # When things go wrong
//
//	no answer yet             1024, the default of A32
//	control plane away        the last limit; reconnecting with backoff
//	bad resource              the last limit; NACK; the good ones of the response apply
//	resource deleted          the last limit, or the default: [Config.Deleted]
//	resource never comes      told after 15 s ([Config.DoesNotExist]): [ErrNotFound]
//	same name twice           NACK, the last limit
//	time to live over         the last limit; heartbeats are accepted, and not needed
//
// Backoff is 1 s · 1.6^n ± 20 %, at most 120 s, and starts again once a response was
// received. Servers that send a rejected resource again at once would be answered
// thousands of times a second; here a NACK that follows a NACK waits 250 ms, then
// twice as long each time up to 4 s, unless a better response comes before.
//
// # Load reports
//
// The Client reports to the load reporting service of the control plane (LRS) for clusters
// whose resource has lrs_server.self. It reports exactly what the limiters rejected, and what
// was issued, is in progress, succeeded and failed, for each [Locality], as far as it is
// counted: by [Cluster.RoundTripper] for HTTP, by [Cluster.StatsHandler] for gRPC, by [Load]
// for everything else. The server's interval is clamped to [Config.MinReportInterval] and an
// hour; each of its responses counts, not only the first. Counts whose report could not be
// sent go into the next one. Calls that the throttle of package egress rejects are not
// reported. They are not drops of the cluster's own policy (circuit breakers, drop_overload),
// which are the only categories of LRS; and the backend has rejected as many calls before,
// which are reported as failed. [egress.Client.Stats] counts them. LRS has no
// acknowledgements: a report that was passed to a connection after it broke, and before that
// was noticed, is lost.
//
// # Servers
//
// An [Orca] makes load reports (ORCA, gRFC A51) of an ingress.Server, in the
// trailer of each call or out of band, by which weighted_round_robin and Envoy
// move load away from a busy task:
//
//	application_utilization  the greatest of the server's utilization and its
//	                         executor load average, and more than 1 while it sheds
//	cpu_utilization          share of the processors' time
//	rps_fractional           requests per second, rejected ones included
//	eps                      rejected ones per second
//
// # Bootstrap
//
// The bootstrap is gRPC's own: GRPC_XDS_BOOTSTRAP names a file, or
// GRPC_XDS_BOOTSTRAP_CONFIG holds it. Not supported, and rejected by name, are more than
// one entry of xds_servers (fallback, gRFC A71) and names of the form xdstp: (gRFC A47);
// so the authorities of a bootstrap have no effect. Channel
// credentials are gRPC's own (insecure, tls with certificates that are read
// again, google_default) and what was registered with
// google.golang.org/grpc/xds/bootstrap. No error of reading it holds any of its
// values.
package spillxds
