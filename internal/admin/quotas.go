package admin

import (
	"io"

	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// quotaNotices returns what is wrong with shared quotas between two samples.
func quotaNotices(then, now *Levels) (all []Notice) {
	for _, q := range now.Quotas {
		was := find(then.Quotas, func(x quotastats.Stats) bool { return x.Name == q.Name })
		switch {
		case q.Errors > was.Errors && q.Syncs <= was.Syncs:
			all = append(all, Notice{telemetry.NoticeQuotaAway, q.Name, "The servers of quota " + q.Name + " do not answer.",
				"Customers keep their last share, and later get their limit divided by tasks, 10 by default. The log has the error."})
		case q.Lost:
			all = append(all, Notice{telemetry.NoticeQuotaLeader, q.Name, "Quota " + q.Name + " has no leader.",
				"Its servers answer, but no task sends levels: customers get their limit divided by tasks, 10 by default. " +
					"Look at the task that leads (spillway_quota_leader)."})
		}
		if q.Conflict {
			all = append(all, Notice{telemetry.NoticeQuotaConflict, q.Name, "Tasks have different limits for quota " + q.Name + ".",
				"The limits of the leader count. Roll out the same file everywhere."})
		}
	}
	return all
}

// writeQuotas writes what customers make of quotas, and what their requests cost.
func writeQuotas(w io.Writer, st *State) {
	customers.Write(w, st.Customers)
	for i, x := range st.Clusters {
		customers.WriteCosts(w, i == 0, x.Name, x.Costs)
	}
}
