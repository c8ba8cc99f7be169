// Package degradation decides at a server how far answers are degraded, so that they cost less: by
// class, and before requests are rejected. What a handler leaves out at a level is its own affair.
//
// # Stages
//
// There is one stage for the task, from 0 to [Stages], and the level of a class is
// the stage less the rank of the class: SHEDDABLE answers are degraded first,
// SHEDDABLE_PLUS ones a stage later, and so on. Stages that change nothing for the
// classes that call are skipped.
//
// A stage rises while the waiting queue is more than half full, more than one in
// twenty requests is rejected, or utilization comes within the margin of a class that
// is not degraded yet.
//
// # Why a stage does not fall when the pressure is gone
//
// Cheap answers remove the pressure that called for them. A level that followed the
// pressure would switch cheap answers on and off. So a stage remembers the rate of
// requests that were offered when it was needed, and falls when, after a dwell of
// calm, less than 0.8 of that is offered; or after 30 s, as a trial. A trial that
// fails, with pressure again within a minute, doubles that time, and the rate at
// which it failed becomes the one to fall below. So in steady load a level changes
// at most four times a minute, whatever the handlers do.
//
// Source: Site Reliability Engineering, chapter 21, "Handling Overload" (degraded responses), and
// chapter 22, "Load Shedding and Graceful Degradation". The sources name no rule for the way back:
// that is this package's.
package degradation
