package telemetry

// The kinds of notices: values of the label kind.
const (
	NoticeStarved   = "process_starved"     // this process lacks processor time
	NoticeEndpoints = "endpoints_down"      // some, but not all, of a cluster
	NoticeMongoDB   = "mongodb_unreachable" // the servers of a MongoDB listener
	NoticeExpired   = "certificate_expired" // of a listener
	NoticeExpires   = "certificate_expires" // within three days
	NoticeReload    = "reload_failed"
	NoticeLog       = "log_lost" // lines of a log cannot be written
	NoticeClock     = "clock_step"
	NoticeLimit     = "limit_unusual"     // a limit has left its usual range
	NoticeSlow      = "requests_slow"     // requests of a route take much longer than usual
	NoticeResets    = "connections_reset" // a listener resets many connections

	NoticeControlPlane = "control_plane" // it is away, or limits of it are missing or not valid

	NoticeQuotaAway     = "quota_away"     // the servers of a shared quota
	NoticeQuotaLeader   = "quota_leader"   // a shared quota has none
	NoticeQuotaConflict = "quota_conflict" // proxies have different limits
)

// Notices are all kinds of notices.
var Notices = []string{
	NoticeStarved, NoticeEndpoints, NoticeMongoDB, NoticeExpired, NoticeExpires, NoticeReload, NoticeLog, NoticeClock, NoticeLimit, NoticeSlow, NoticeResets,
	NoticeControlPlane, NoticeQuotaAway, NoticeQuotaLeader, NoticeQuotaConflict,
}
